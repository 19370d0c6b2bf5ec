/** Says what a file is that is given where another kind of file is expected. */
import { open } from 'node:fs/promises';
import { CurlewError } from '../core/errors.ts';

const HEAD = 4096;

/** Throws `SPEC_INVALID` for a package or bundle. What cannot be read is left to the reader of the spec. */
export async function refuseArchive(path: string, shown: string): Promise<void> {
  const head = await headOf(path);
  if (head[0] !== 0x1f || head[1] !== 0x8b) return;
  throw new CurlewError('SPEC_INVALID', `${shown} is a package or bundle, not an installer spec`, {
    hint: `curlew inspect ${shown} shows what is in it; specify a YAML file with kind: Installer`,
  });
}

/** Throws `PACKAGE_INVALID` for an installer spec. What cannot be read is left to the reader of the archive. */
export async function refuseInstaller(path: string, shown: string): Promise<void> {
  if (!/^kind: *["']?Installer\b/m.test((await headOf(path)).toString('latin1'))) return;
  throw new CurlewError('PACKAGE_INVALID', `${shown} is an installer spec, not a package or bundle`, {
    hint: `curlew installer validate ${shown} checks it; curlew bundle ${shown} --from STORE -o FILE makes a bundle of it`,
  });
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
