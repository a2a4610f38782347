// A CSV text as examples: rows of numbers with the label last; a line of titles is optional.

import { RecipeError } from "./errors.js";
import { asLabels } from "./labels.js";

/** @import { Examples } from "./types.js" */

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const WHOLE = /^[+-]?(0|[1-9]\d*)$/; // a label with leading zeros is a name
const NOT_FINITE = /^[+-]?(inf|infinity)$/i;
const MISSING = new Set(["", "na", "n/a", "nan", "null", "none", "?", "-"]);
// The first bytes of a compressed file, or a control character that no CSV file contains.
// eslint-disable-next-line no-control-regex
const NO_TEXT = /^BZh|[\x00-\x08\x0b\x0c\x0e-\x1f]/;

/**
 * @param {string} text
 * @param {string} name of the file, for messages
 * @returns {Examples}
 */
export function readCsv(text, name) {
  if (NO_TEXT.test(text)) throw new RecipeError(`${name} is not text: the lab reads CSV files`);
  const records = withoutEmptyEnd(recordsOf(withoutComments(text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n"))));
  if (!records.length) throw new RecipeError(`${name}: the file is empty`);
  const [first] = records;
  const width = first.cells.length;
  if (width < 2) throw new RecipeError(`${name}: there is no column beside the label; separate columns by commas, semicolons, tabs or blanks`);
  for (const { cells, line } of records) {
    if (cells.length !== width) throw new RecipeError(`${name}, line ${line}: ${cells.length} columns where line ${first.line} has ${width}`);
  }
  // A line of titles has no number; where there is one, the line is data, and what is none of it is told.
  const heads = first.cells.slice(0, -1);
  const titled = heads.every((cell) => !NUMBER.test(cell) && !NOT_FINITE.test(cell)) && heads.some((cell) => !MISSING.has(cell.toLowerCase()));
  const titles = titled ? distinct(heads) : null;
  const rows = records.slice(titled ? 1 : 0).filter(({ cells }) => !MISSING.has(cells[width - 1].toLowerCase()));
  if (!rows.length) throw new RecipeError(`${name}: there is no row with a label`);
  const X = rows.map(({ cells, line }) => cells.slice(0, -1).map((cell, j) => number(cell, `${name}, line ${line}, column ${j + 1}${titles ? ` (${titles[j]})` : ""}`)));
  return { name, X, labels: asLabels(rows.map(({ cells }) => cells[width - 1]), WHOLE), features: titles, bias: true, tie: "mistake" };
}

/** @param {string[]} titles with c0, c1 … for empty ones and the position added to repeated ones */
function distinct(titles) {
  const names = titles.map((title, j) => title || `c${j}`);
  const taken = new Set(names);
  names.forEach((title, j) => {
    for (let name = title; names.indexOf(names[j]) < j; ) {
      name = `${name}_${j}`;
      if (!taken.has(name)) names[j] = name;
    }
  });
  return names;
}

/** @param {string} text without the comments at its beginning: lines with # and no delimiter */
function withoutComments(text) {
  return text.replace(/^(?:[^\S\n]*(?:#[^\t;,|\n]*)?\n)+/, (lines) => lines.replace(/[^\n]/g, "")); // the lines stay, to be counted
}

/** @param {{ cells: string[], line: number }[]} records without a last column that is empty in all of them, as a delimiter at each end makes it */
function withoutEmptyEnd(records) {
  const isEmpty = records.length > 0 && records.every(({ cells }) => cells.length > 2 && cells.at(-1) === "");
  return isEmpty ? records.map(({ cells, line }) => ({ cells: cells.slice(0, -1), line })) : records;
}

/** @param {string} cell @param {string} where */
function number(cell, where) {
  if (MISSING.has(cell.toLowerCase())) throw new RecipeError(`${where}: a value is missing`);
  const value = NUMBER.test(cell) ? Number(cell) : NaN;
  if (!Number.isFinite(value)) throw new RecipeError(`${where}: '${cell}' is not a finite number`);
  return value;
}

/**
 * The delimiter: the mark that occurs equally often in the first two lines, else in the first; undefined for blanks.
 * @param {string} text
 */
function delimiterOf(text) {
  const [head = "", second = head] = text.split("\n").filter((line) => line.trim());
  const count = (/** @type {string} */ line, /** @type {string} */ mark) => line.replace(/"[^"]*"/g, "").split(mark).length - 1;
  const marks = ["\t", ";", ",", "|"].filter((mark) => count(head, mark));
  return marks.find((mark) => count(head, mark) === count(second, mark)) ?? marks[0];
}

/**
 * The records of a text, with the line at which each begins.
 * @param {string} text
 */
function recordsOf(text) {
  const delimiter = delimiterOf(text);
  if (!delimiter) return recordsOfWords(text);
  /** @type {{ cells: string[], line: number }[]} */
  const records = [];
  let [cells, cell, quoted, line, begin] = [/** @type {string[]} */ ([]), "", false, 1, 1];
  const endRecord = () => {
    const whole = [...cells, cell];
    if (whole.some((each) => each.trim())) records.push({ cells: whole.map((each) => each.trim()), line: begin });
    [cells, cell, begin] = [[], "", line];
  };
  for (let i = 0; i < text.length; i += 1) {
    const mark = text[i];
    if (mark === "\n") line += 1;
    if (quoted) {
      if (mark !== '"') cell += mark;
      else if (text[i + 1] === '"') [cell, i] = [cell + '"', i + 1];
      else quoted = false;
    } else if (mark === '"' && !cell.trim()) [cell, quoted] = ["", true];
    else if (mark === delimiter) [cells, cell] = [[...cells, cell], ""];
    else if (mark === "\n") endRecord();
    else cell += mark;
  }
  endRecord();
  return records;
}

/** The records of a text that has blanks between its columns. @param {string} text */
function recordsOfWords(text) {
  const unquoted = (/** @type {string} */ word) => (/^"[^]*"$/.test(word) ? word.slice(1, -1).replaceAll('""', '"').trim() : word);
  const words = text.split("\n").map((line) => (line.match(/"(?:[^"]|"")*"|\S+/g) ?? []).map(unquoted));
  return words.map((cells, i) => ({ cells, line: i + 1 })).filter(({ cells }) => cells.length);
}
