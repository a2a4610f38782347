"""Put the model where the data are: into SQL, and into an ONNX file for a program in another language. 178 wines."""

import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
from sklearn.datasets import load_wine

from separatrix import train
from separatrix.exporting import to_onnx, to_sql

wine = load_wine(as_frame=True)
table = wine.data[["alcohol", "flavanoids", "color_intensity", "proline"]].assign(grower=wine.target_names[wine.target])
model = train(table, label="grower", bins=4)
wanted = model.predict(table.drop(columns="grower"))
print(f"in Python, {np.sum(wanted == table['grower'])} of the {len(table)} wines that it learned from are right")

# The query is the whole model: bins, weights, missing values. The database needs nothing but SQL.
query = to_sql(model, table="wines")
print(f"\nthe query has {len(query):,} characters, and begins\n{query[:340]} …")
with sqlite3.connect(":memory:") as database:
    table.to_sql("wines", database, index=False)
    in_sql = pd.read_sql(query, database)["prediction"]
print("\nSQLite says the same:", np.array_equal(in_sql, wanted))
print(pd.read_sql(f"SELECT prediction, grower, count(*) AS wines FROM ({query.rstrip(';')}) GROUP BY 1, 2", database))

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "wines.onnx"
    to_onnx(model, file)
    session = onnxruntime.InferenceSession(file)
    columns = {name: table[[name]].to_numpy(dtype=float) for name in table.columns.drop("grower")}
    in_onnx = session.run(["label"], columns)[0]
    print("\nONNX says the same:", np.array_equal(in_onnx, wanted), f"({file.stat().st_size:,} bytes)")
