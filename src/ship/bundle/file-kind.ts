/** Says what a file is that is given where another kind of file is expected. */
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cancellable } from '../../core/cancellable.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { hasBundleFiles, storeKey } from '../../core/layout.ts';
import { compareText } from '../../core/ref.ts';
import type { RangeSource } from '../../formats/archive/entry.ts';
import { readRange } from '../../formats/archive/read.ts';

const HEAD = 4096;

/** True for a file that begins like a package or bundle. */
export async function isCompressed(path: string): Promise<boolean> {
  const head = await headOf(path);
  return head[0] === 0x1f && head[1] === 0x8b;
}

/** Throws `SPEC_INVALID` for a package or bundle. What cannot be read is left to the reader of the spec. */
export async function refuseArchive(path: string, shown: string): Promise<void> {
  if (!(await isCompressed(path))) return;
  throw new CurlewError('SPEC_INVALID', `${shown} is a package or bundle, not an installer spec`, {
    hint: `curlew inspect ${shown} shows what is in it; specify a YAML file with kind: Installer`,
  });
}

/** Throws `PACKAGE_INVALID` for an installer spec. What cannot be read is left to the reader of the archive. */
export async function refuseInstaller(source: RangeSource, shown: string, { signal }: Cancellable): Promise<void> {
  const head = await readRange(source, 0, Math.min(HEAD, source.size), { signal });
  if (!/^kind: *["']?Installer\b/m.test(Buffer.from(head).toString('latin1'))) return;
  throw new CurlewError('PACKAGE_INVALID', `${shown} is an installer spec, not a package or bundle`, {
    hint: `curlew installer validate ${shown} checks it; curlew bundle ${shown} --from STORE -o FILE makes a bundle of it`,
  });
}

/** Throws `UNSUPPORTED` for an address in the place of a file, and says how to read it if it is not that of an archive. */
export function refuseAddress(shown: string): void {
  if (!/^(?:s3|https?):\/\//i.test(shown)) return;
  const address = redact(shown.slice(0, 500));
  const isFile = /\.(?:tar\.gz|tgz|json)(?:[?#]|$)/i.test(shown);
  throw new CurlewError('UNSUPPORTED', `${address} is an address, but this command reads files only`, {
    hint: isFile ? 'download the file first' : storeHint(address),
  });
}

function storeHint(store: string): string {
  return `curlew versions --from ${store} lists what a store has; with --key FILE it verifies the signature of the release`;
}

/** Options of a command that take a folder where another one takes the file of a bundle. */
export type FolderOption = '--dir' | '--from';

/** Throws `FILE_UNUSABLE` for a folder, and says how to read it if it is a store, or which of the options is for it. */
export async function refuseFolder(path: string, shown: string, options: readonly FolderOption[] = []): Promise<void> {
  if (!(await isFolder(path))) return;
  const names = (await readdir(path).catch((): string[] => [])).toSorted(compareText);
  const isStore = names.includes(storeKey.version);
  const archive = names.find((name) => name.endsWith('.tar.gz'));
  const isUnpacked = !isStore && hasBundleFiles(names);
  const hint = (): string => {
    if (!isUnpacked && (isStore || archive !== undefined) && options.includes('--from'))
      return `--from ${shown} takes the packages of a ${isStore ? 'store' : 'folder of builds'}`;
    if (isStore) return storeHint(shown);
    const file = archive === undefined ? 'specify a file' : `specify a file in it, such as ${join(shown, archive)}`;
    if (!isUnpacked) return options.includes('--dir') ? `${file}, or use --dir ${shown} for an unpacked bundle` : file;
    if (options.includes('--dir')) return `--dir ${shown} takes an unpacked bundle`;
    return `specify the file that it was unpacked from; curlew verify ${shown} checks the unpacked files`;
  };
  const kind = isStore ? 'a store' : isUnpacked ? 'the folder of an unpacked bundle' : 'a folder';
  throw new CurlewError('FILE_UNUSABLE', `${shown} is ${kind}, not a package or bundle`, { hint: hint() });
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}

/** The first bytes of a file; none of anything else. */
async function headOf(path: string): Promise<Buffer> {
  try {
    await using file = await open(path);
    if (!(await file.stat()).isFile()) return Buffer.alloc(0);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD), 0, HEAD, 0);
    return buffer.subarray(0, bytesRead);
  } catch {
    return Buffer.alloc(0);
  }
}
