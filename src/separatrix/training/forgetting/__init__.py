"""`forget`: a trained model without some of the rows it was trained on, as if they had never been there.

In come a model, the data it was trained on and the numbers of rows; out come the model that training without them gives, bit
for bit, and a receipt. `refitting.py` has what is fitted on data in memory, `retraining.py` the recipe of `train`, on files.
"""
