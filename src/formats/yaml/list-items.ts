/** Adds and removes an item of a list in a YAML text, and leaves every other byte as it is. Pure. */
import { isSeq, parseAllDocuments, stringify, type Document } from 'yaml';
import { canonicalJson } from '../../core/digest.ts';

interface Place {
  /** Whether this is the document, by its value. */
  readonly isIt: (value: unknown) => boolean;
  /** Path of the list in it. */
  readonly path: readonly string[];
}

type Change = { readonly remove: number } | { readonly add: unknown };

/** Undefined where the list is not written as one item after the other on lines of their own, or would not become what it should. */
export function changeList(text: string, { isIt, path }: Place, change: Change): string | undefined {
  const before = documentOf(text, isIt);
  const list = before?.getIn(path, true);
  if (before === undefined || !isSeq(list) || list.flow === true) return undefined;
  const starts = list.items.map((item) => lineOf(text, item));
  const items = list.toJS(before) as readonly unknown[];
  const expected = 'add' in change ? [...items, change.add] : items.filter((_, at) => at !== change.remove);
  const start = starts.at('add' in change ? -1 : change.remove);
  if (start === undefined) return undefined;
  const end = endOf(text, start);
  const changed =
    'add' in change
      ? text.slice(0, end).replace(/(?<!\n)$/, '\n') + itemText(text, start, change.add) + text.slice(end)
      : text.slice(0, start.at) + text.slice(end);
  const after = documentOf(changed, isIt);
  if (after === undefined) return undefined;
  before.setIn(path, expected);
  return canonicalJson(before.toJS() ?? null) === canonicalJson(after.toJS() ?? null) ? changed : undefined;
}

function documentOf(text: string, isIt: Place['isIt']): Document | undefined {
  const documents = parseAllDocuments(text);
  if (!Array.isArray(documents) || documents.some(({ errors }) => errors.length > 0)) return undefined;
  return documents.find((one) => isIt(one.toJS()));
}

interface Start {
  /** Where its line begins. */
  readonly at: number;
  /** Column of its dash. */
  readonly indent: number;
}

function lineOf(text: string, item: unknown): Start | undefined {
  const { range } = Object(item) as { readonly range?: readonly [number, number, number] };
  if (range === undefined) return undefined;
  const at = text.lastIndexOf('\n', range[0] - 1) + 1;
  const [, blanks] = /^( *)- +$/.exec(text.slice(at, range[0])) ?? [];
  return blanks === undefined ? undefined : { at, indent: blanks.length };
}

/** Where the lines of an item end; empty lines after it are not its own, nor are comments in its column. */
function endOf(text: string, { at, indent }: Start): number {
  let end = at;
  for (let line = at; line < text.length;) {
    const next = text.indexOf('\n', line) + 1 || text.length;
    const content = text.slice(line, next);
    const isIn = content.search(/[^ ]/) > indent;
    const isBlank = content.trim() === '' || (!isIn && /^ *#/.test(content));
    if (line > at && !isBlank && !isIn) break;
    if (!isBlank) end = next;
    line = next;
  }
  return end;
}

function itemText(text: string, { indent }: Start, value: unknown): string {
  const lines = stringify([value], { lineWidth: 0 }).trimEnd().split('\n');
  const end = text.includes('\r\n') ? '\r\n' : '\n';
  return lines.map((line) => `${' '.repeat(indent)}${line}${end}`).join('');
}
