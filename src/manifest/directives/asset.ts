/** `asset <file name> <source>`: a file from the web or next to the Manifest, stored under `assets/`. */
import { posix } from 'node:path';
import type { Word } from '../../core/diagnostic.ts';
import type { Digest } from '../../core/digest.ts';
import { fileNameProblem } from '../../core/layout.ts';
import { eachRepeated, missingWords, word, type DirectiveRequest, type Directive, type Line } from '../directive.ts';
import { quoted, type Find } from '../rules.ts';

export interface AssetRequest extends DirectiveRequest {
  readonly kind: 'asset';
  readonly fileName: Word;
  /** The source in the Manifest. */
  readonly source: Word;
  /** URL without its fragment, or a path as written. */
  readonly address: string;
  readonly local: boolean;
  readonly digest: Digest | undefined;
}

type Source = Pick<AssetRequest, 'address' | 'local' | 'digest'>;

const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//;
const DIGEST = /^#sha256=([0-9a-fA-F]{64})$/;
const LOOPBACK = /^(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])$/;
const MAX_LENGTH = 4096;

/** The place of a part of a word; `from` counts from 0. */
function part(source: Word, from: number, length: number): Word['place'] {
  return { ...source.place, column: source.place.column + from, length: Math.max(1, length) };
}

function readUrl(source: Word, find: Find): Source | undefined {
  const { text, place } = source;
  const hash = text.indexOf('#');
  const address = hash === -1 ? text : text.slice(0, hash);
  const fragment = hash === -1 ? '' : text.slice(hash);
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || url.hostname === '') {
    find('asset/source', place, 'the URL does not parse', 'https://host/path, or a path relative to the Manifest');
    return undefined;
  }
  if (url.username !== '' || url.password !== '') {
    const hint = 'the Manifest is part of the package: keep credentials out of it';
    find('asset/credentials', place, 'the URL contains a user name or a password', hint);
    return undefined;
  }
  const [, hex] = DIGEST.exec(fragment) ?? [];
  if (fragment !== '' && hex === undefined) {
    const hint = '#sha256=<64 hex digits>, the only supported fragment';
    find('asset/digest', part(source, hash, fragment.length), 'the fragment is not a sha256 digest', hint);
    return undefined;
  }
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname)) {
    const hint = 'use https; a build refuses plain http from other hosts';
    find('asset/plain-http', part(source, 0, 'http://'.length), 'plain http can be modified in transit', hint);
  }
  return { address, local: false, digest: hex === undefined ? undefined : `sha256:${hex.toLowerCase()}` };
}

function readSource(source: Word, find: Find): Source | undefined {
  const { text, place } = source;
  if (text.length > MAX_LENGTH) {
    find('asset/source', place, `the source is longer than ${MAX_LENGTH} characters`);
    return undefined;
  }
  const [, scheme] = SCHEME.exec(text) ?? [];
  if (scheme !== undefined && !/^https?$/i.test(scheme)) {
    const hint = 'https://…, or a path relative to the Manifest';
    find('asset/source', part(source, 0, scheme.length), `${quoted(scheme)} is not a scheme for assets`, hint);
    return undefined;
  }
  if (scheme !== undefined) return readUrl(source, find);
  if (text.endsWith('/') || text === '.' || text === '..') {
    find('asset/source', place, 'the source is a folder', 'an asset is one file');
    return undefined;
  }
  if (text.startsWith('/')) {
    find('asset/absolute-path', place, 'an absolute path works only on this machine');
  }
  return { address: text, local: true, digest: undefined };
}

const USAGE = 'asset [<file name>] <https://…[#sha256=…] or path>';

/**
 * The two words of a line. A single word with a `/` is the source (kURL's documentation has this form); the last part of its
 * path is then the file name.
 */
function readWords(line: Line, find: Find): { readonly fileName: Word; readonly source: Word } | undefined {
  if (line.words.length > 1) return { fileName: word(line, 0), source: word(line, 1) };
  const source = word(line, 0);
  const [path = ''] = source.text.split(/[?#]/, 1);
  const after = path.replace(/^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/]*\/?/, '');
  const text = after.slice(after.lastIndexOf('/') + 1);
  if (!source.text.includes('/') || text === '') {
    find(missingWords(line, 2, USAGE));
    return undefined;
  }
  const hint = `kURL's builder uses the first word as the file name: asset ${text.slice(0, 60)} <source> works with both`;
  find('asset/one-word', source.place, `the file name is ${quoted(text)}, from the source`, hint);
  const at = path.length - text.length;
  return { fileName: { text, place: part(source, at, text.length) }, source };
}

export const asset: Directive<AssetRequest> = {
  keyword: 'asset',
  kind: 'asset',
  usage: USAGE,
  about:
    'A file from a URL, or from a path in the repository, relative to the folder of the Manifest. With `#sha256=<hex>` after the URL, the ' +
    'file is accepted only with that digest. Plain http is refused except from the loopback host. The default file name is ' +
    'the last part of the path.',
  yields: '`assets/<file name>`',
  columns: { needed: 1, most: 2 },
  parse(line, find) {
    const words = readWords(line, find);
    if (words === undefined) return undefined;
    const { fileName, source } = words;
    const problem = fileNameProblem(fileName.text);
    if (problem !== undefined) {
      const hint = 'the file name comes first, then the source; the name contains no folder';
      const message = `the file name ${quoted(fileName.text)} ${problem}`;
      find('asset/file-name', fileName.place, message, hint);
    }
    const fields = readSource(source, find);
    if (problem !== undefined || fields === undefined) return undefined;
    const { keyword, place } = line;
    return { kind: 'asset', keyword, place, fileName, source, ...fields };
  },
  check(requests, find) {
    eachRepeated(
      requests,
      ({ fileName }) => fileName.text,
      ({ fileName }, first) => {
        const message = `line ${first.place.line} already has an asset named ${quoted(fileName.text)}`;
        find('asset/duplicate-name', fileName.place, message);
      },
    );
    eachRepeated(
      requests,
      ({ address, local }) => (local ? posix.normalize(address) : address),
      ({ fileName, source }, first) => {
        if (fileName.text === first.fileName.text) return;
        const message = `line ${first.place.line} already packs this file as ${quoted(first.fileName.text)}`;
        find('asset/packed-twice', source.place, message, 'one asset is enough if the scripts use its name');
      },
    );
  },
  plan: (requests) =>
    requests.map(({ fileName, address, local, digest }) => ({
      kind: 'asset',
      fileName: fileName.text,
      source: address,
      local,
      digest,
    })),
};
