// The standalone page of a run, made from the template that Python bundled.

/** @param {string} text as text of an HTML element */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;").replaceAll("'", "&#x27;");
}

/**
 * @param {{ html: string }} template in which the words NAME, SUMMARY and DOCUMENT of `marks` stand for what differs between runs
 * @param {any} doc
 */
export function runPage({ html }, doc) {
  const text = JSON.stringify(doc, (_, value) => (ArrayBuffer.isView(value) ? Array.from(/** @type {any} */ (value)) : value));
  const bias = doc.bias ? "with a bias" : "without a bias";
  const features = doc.features.length;
  const counts = `${doc.n_train.toLocaleString("en")} examples, ${features} feature${features === 1 ? "" : "s"}, ${doc.classes.length} classes`;
  const summary = `${counts}; ${doc.learner}, ${doc.order} order, ${bias}`;
  /** @type {Record<string, string>} */
  const parts = { "{{name}}": escaped(doc.name), "{{summary}}": escaped(summary), "{{document}}": text.replaceAll("<", "\\u003c") };
  return html.replace(/\{\{(name|summary|document)\}\}/g, (mark) => parts[mark]);
}
