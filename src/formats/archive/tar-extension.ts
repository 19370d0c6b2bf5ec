/** Tar headers that describe the next entry: long names and pax records. Hostile input. */
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

/** Properties of the next entry from extension headers. */
export interface Extension {
  pax: Pax | undefined;
  path: string | undefined;
  linkpath: string | undefined;
}

export function noExtension(): Extension {
  return { pax: undefined, path: undefined, linkpath: undefined };
}

/** Reads an extension header into `extension`; false for any other header. */
export async function takeExtension(
  reader: ByteReader,
  { type }: Header,
  size: number,
  extension: Extension,
  refuse: (what: string) => Error,
): Promise<boolean> {
  if (!EXTENSIONS.has(type)) return false;
  if (size > EXTENSION_LIMIT) throw refuse(`an extension header of ${size} bytes`);
  const data = await reader.take(size);
  if (data.byteLength < size) throw refuse('it is truncated');
  await reader.take(paddingOf(size));
  const text = data.toString('utf8');
  const [name = ''] = text.split('\u0000', 1);
  if (type === 'NextFileHasLongPath') extension.path = name;
  else if (type === 'NextFileHasLongLinkpath') extension.linkpath = name;
  else if (type !== 'GlobalExtendedHeader') extension.pax = Pax.parse(text, extension.pax);
  return true;
}
