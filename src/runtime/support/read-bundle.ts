/** Reads a support bundle from anywhere: hostile. */
import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import type { Cancellable } from '../../core/cancellable.ts';
import { CurlewError, errorAbout } from '../../core/errors.ts';
import { walkTar } from '../../formats/archive/walk-tar.ts';
import { INDEX_PATH, parseSupportIndex, VERSION_PATH, type SupportIndex } from './support-index.ts';

const INDEX_LIMIT = 64 << 20;
/** The limit of everything before the index. */
const MAX_BYTES = 4 * 2 ** 30;

/** Undefined for a file that is no support bundle. `PACKAGE_INVALID` for one that is damaged, or that another program has made. */
export async function readSupportBundle(path: string, { signal }: Cancellable): Promise<SupportIndex | undefined> {
  const bad = errorAbout(
    'PACKAGE_INVALID',
    `cannot read the support bundle ${path}`,
    'check that its transfer is complete',
  );
  const file = createReadStream(path);
  const stream = file.pipe(createGunzip());
  file.on('error', (error) => stream.destroy(error));
  let isBundle = false;
  let bytes = 0;
  try {
    for await (const { path: name, size, data } of walkTar(stream, { refuse: bad, signal })) {
      const own = name.slice(name.indexOf('/') + 1);
      if (!isBundle && own !== VERSION_PATH) return undefined;
      isBundle = true;
      bytes += size;
      if (bytes > MAX_BYTES || size > INDEX_LIMIT * 8) throw bad('it is too large');
      if (own !== INDEX_PATH) continue;
      if (size > INDEX_LIMIT) throw bad('its index is too large');
      return parseSupportIndex((await data()).toString('utf8'), bad);
    }
  } catch (error) {
    signal.throwIfAborted();
    // Another kind of file, which its own reader judges.
    if (!isBundle) return undefined;
    throw error instanceof CurlewError ? error : bad('it is damaged');
  } finally {
    stream.destroy();
    file.destroy();
  }
  if (!isBundle) return undefined;
  throw bad('it has no index, so another program has made it: analyze of Troubleshoot reads it');
}
