/** Conditions with `&&`, `||`, `!`, parentheses, comparisons and `in (…)` over named numbers. Pure. */
import { AnalyzerProblem, compareNumbers } from './outcome.ts';

type Names = Readonly<Record<string, number>>;
type Condition = (names: Names) => boolean;
type Amount = (names: Names) => number;

const WORD = /\s*(?:(\d+(?:\.\d+)?)|([A-Za-z_][A-Za-z0-9_.]*)|(&&|\|\||[=!<>]=?=?|[(),-]))/y;
const MAX_DEPTH = 50;

interface Reader {
  readonly words: readonly string[];
  at: number;
  depth: number;
  readonly problem: (what: string) => AnalyzerProblem;
}

/** Parses a condition. Throws {@link AnalyzerProblem} if it is invalid; the returned function does for an unknown name. */
export function readCondition(text: string): Condition {
  const problem = (what: string): AnalyzerProblem =>
    new AnalyzerProblem(`the condition ${JSON.stringify(text)}: ${what}`);
  const words: string[] = [];
  const trimmed = text.trimEnd();
  for (let at = 0; at < trimmed.length; at = WORD.lastIndex) {
    WORD.lastIndex = at;
    const match = WORD.exec(trimmed);
    if (match === null) throw problem(`unexpected ${JSON.stringify(trimmed.slice(at, at + 10).trim())}`);
    words.push(match[0].trim());
  }
  const reader: Reader = { words, at: 0, depth: 0, problem };
  const condition = readAny(reader);
  if (reader.at < words.length) throw problem(`unexpected ${JSON.stringify(words[reader.at])}`);
  return condition;
}

function take(reader: Reader, word: string): boolean {
  if (reader.words[reader.at] !== word) return false;
  reader.at += 1;
  return true;
}

function readAny(reader: Reader): Condition {
  const parts = [readAll(reader)];
  while (take(reader, '||')) parts.push(readAll(reader));
  return (names) => parts.some((part) => part(names));
}

function readAll(reader: Reader): Condition {
  const parts = [readOne(reader)];
  while (take(reader, '&&')) parts.push(readOne(reader));
  return (names) => parts.every((part) => part(names));
}

function readOne(reader: Reader): Condition {
  reader.depth += 1;
  if (reader.depth > MAX_DEPTH) throw reader.problem('nested too deeply');
  try {
    if (take(reader, '!')) {
      const inner = readOne(reader);
      return (names) => !inner(names);
    }
    if (take(reader, '(')) {
      const inner = readAny(reader);
      if (!take(reader, ')')) throw reader.problem('a parenthesis is not closed');
      return inner;
    }
    if (take(reader, 'true')) return () => true;
    if (take(reader, 'false')) return () => false;
    return readComparison(reader);
  } finally {
    reader.depth -= 1;
  }
}

function readComparison(reader: Reader): Condition {
  const left = readAmount(reader);
  if (['in', 'IN'].some((word) => take(reader, word))) {
    const list = readList(reader);
    return (names) => list.some((one) => one(names) === left(names));
  }
  const sign = reader.words[reader.at] ?? '';
  if (!/^[=!<>]+$/.test(sign) || sign === '!') throw reader.problem('a comparison is missing');
  reader.at += 1;
  const right = readAmount(reader);
  return (names) => compareNumbers(sign, left(names), right(names), true);
}

function readList(reader: Reader): readonly Amount[] {
  if (!take(reader, '(')) throw reader.problem('a list must be in parentheses');
  const list = [readAmount(reader)];
  while (take(reader, ',')) list.push(readAmount(reader));
  if (!take(reader, ')')) throw reader.problem('a list is not closed');
  return list;
}

function readAmount(reader: Reader): Amount {
  const sign = take(reader, '-') ? -1 : 1;
  const word = reader.words[reader.at] ?? '';
  reader.at += 1;
  if (/^\d/.test(word)) return () => sign * Number(word);
  if (!/^[A-Za-z_]/.test(word)) throw reader.problem('a number or a name is missing');
  return (names) => {
    const value = Object.hasOwn(names, word) ? names[word] : undefined;
    if (value === undefined) throw reader.problem(`unknown name ${word}`);
    return sign * value;
  };
}
