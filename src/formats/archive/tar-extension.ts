/** Headers of a tar that say something about the entry after them: long names, and pax records. Hostile input. */
import type { Header } from 'tar/header';
import { Pax } from 'tar/pax';
import type { ByteReader } from './byte-reader.ts';
import { paddingOf } from './header.ts';

const EXTENSION_LIMIT = 1 << 20;
const EXTENSIONS: ReadonlySet<string> = new Set([
  'NextFileHasLongPath',
  'NextFileHasLongLinkpath',
  'ExtendedHeader',
  'OldExtendedHeader',
  'GlobalExtendedHeader',
]);

/** What extension headers say about the next entry. */
export interface Extension {
  pax: Pax | undefined;
  path: string | undefined;
  linkpath: string | undefined;
}

export function noExtension(): Extension {
  return { pax: undefined, path: undefined, linkpath: undefined };
}

/** True when the header is about the next entry and was taken in. */
export async function takeExtension(
  reader: ByteReader,
  { type }: Header,
  size: number,
  extension: Extension,
  refuse: (what: string) => Error,
): Promise<boolean> {
  if (!EXTENSIONS.has(type)) return false;
  if (size > EXTENSION_LIMIT) throw refuse(`an entry with a name of ${size} bytes`);
  const data = await reader.take(size);
  if (data.byteLength < size) throw refuse('it ends early');
  await reader.take(paddingOf(size));
  const text = data.toString('utf8');
  const [name = ''] = text.split('\u0000', 1);
  if (type === 'NextFileHasLongPath') extension.path = name;
  else if (type === 'NextFileHasLongLinkpath') extension.linkpath = name;
  else if (type !== 'GlobalExtendedHeader') extension.pax = Pax.parse(text, extension.pax);
  return true;
}
