/**
 * Parses the text of a Manifest. Pure: no files, no clock, no network. Never throws for bad input: a broken line becomes a
 * finding and parsing continues, so that one run reports all errors.
 *
 * Lines end in LF, optional on the last line; blanks and tabs around and between words are ignored; a line whose first
 * character is `#` is a comment; there are no quotes, escapes or variables.
 */
import { compareDiagnostics, type Diagnostic, type Place, type Word } from '../core/diagnostic.ts';
import { checkColumns, withoutComment } from './directive.ts';
import { checkRequests, DIRECTIVES, type FetchedSource } from './directives.ts';
import { nearest } from '../core/nearest.ts';
import { finder, finding, quoted, type Find } from './rules.ts';

export interface AddonManifest {
  /** For messages; as given. */
  readonly file: string;
  /** The requests of well-formed lines, in order. Ignores inline comments. */
  readonly requests: readonly FetchedSource[];
}

interface ParsedManifest {
  readonly manifest: AddonManifest;
  /** Sorted by place. */
  readonly diagnostics: readonly Diagnostic[];
}

/** Size limit of a Manifest in characters; real ones have fewer than 5,000. */
export const MANIFEST_TEXT_LIMIT = 1024 * 1024;
const MAX_FINDINGS = 1000;

/** `text` is the decoded file; bytes that are not UTF-8 are U+FFFD. `file` is only for messages. */
export function parseManifest(file: string, text: string): ParsedManifest {
  const diagnostics: Diagnostic[] = [];
  const requests: FetchedSource[] = [];
  const find = finder((one) => diagnostics.push(one));
  if (text.length > MANIFEST_TEXT_LIMIT) return { manifest: { file, requests }, diagnostics: [manifestTooLarge(file)] };
  for (const [index, raw] of text.split('\n').entries()) {
    const at = { file, line: index + 1, column: 1, length: 1 };
    if (diagnostics.length >= MAX_FINDINGS) {
      find('manifest/too-many', at, `more than ${MAX_FINDINGS} errors; the rest is not read`);
      break;
    }
    const request = readLine(cleanLine(raw, at, find), at, find);
    if (request !== undefined) requests.push(request);
  }
  checkRequests(requests, find);
  return { manifest: { file, requests }, diagnostics: diagnostics.toSorted(compareDiagnostics) };
}

/** The finding for a Manifest over {@link MANIFEST_TEXT_LIMIT}. */
export function manifestTooLarge(file: string): Diagnostic {
  const place = { file, line: 1, column: 1, length: 1 };
  const hint = 'is this really a Manifest?';
  return finding('manifest/too-large', place, `the Manifest is larger than ${MANIFEST_TEXT_LIMIT} bytes`, hint);
}

/** Reports invalid characters of a line; returns the readable text, or undefined. */
function cleanLine(raw: string, at: Place, find: Find): string | undefined {
  let text = raw;
  if (at.line === 1 && text.startsWith('\u{FEFF}')) {
    const hint = 'save the file as UTF-8 without a byte order mark';
    find('manifest/byte-order-mark', at, 'the file begins with a byte order mark', hint);
    text = ` ${text.slice(1)}`;
  }
  const ends = /(?<!\r)\r+$/.exec(text);
  if (ends !== null) {
    const place = { ...at, column: ends.index + 1, length: ends[0].length };
    const hint = "use Unix line endings: sed -i 's/\\r$//' Manifest; in .gitattributes: Manifest text eol=lf";
    find('manifest/crlf', place, 'the line ends in CR LF', hint);
    text = text.slice(0, ends.index);
  }
  const badBytes = text.indexOf('\u{FFFD}');
  if (badBytes !== -1) {
    const place = { ...at, column: badBytes + 1 };
    find('manifest/encoding', place, 'the line is not UTF-8 text', 'save the file as UTF-8');
    return undefined;
  }
  const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/.exec(text);
  if (control !== null) {
    const name = `U+${control[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
    find('manifest/control-character', { ...at, column: control.index + 1 }, `the line contains the character ${name}`);
    return undefined;
  }
  return text;
}

function splitWords(text: string, { file, line }: Place): readonly Word[] {
  return [...text.matchAll(/[^ \t]+/g)].map((match) => ({
    text: match[0],
    place: { file, line, column: match.index + 1, length: match[0].length },
  }));
}

function readLine(text: string | undefined, at: Place, find: Find): FetchedSource | undefined {
  const all = text === undefined ? [] : splitWords(text, at);
  const [keyword, ...words] = all;
  if (keyword === undefined || keyword.text.startsWith('#')) return undefined;
  const directive = DIRECTIVES.get(keyword.text);
  if (directive === undefined) {
    const near = nearest(keyword.text, DIRECTIVES.keys());
    const known = `known: ${[...DIRECTIVES.keys()].join(', ')}`;
    const hint = near === undefined ? known : `did you mean "${near}"? ${known}`;
    find('manifest/unknown-directive', keyword.place, `unknown directive ${quoted(keyword.text)}`, hint);
    return undefined;
  }
  const last = all.at(-1) ?? keyword;
  const length = last.place.column + last.place.length - keyword.place.column;
  const line = withoutComment({ keyword, words, place: { ...keyword.place, length } }, find);
  return checkColumns(line, directive, find) ? directive.parse(line, find) : undefined;
}
