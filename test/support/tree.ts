/** Real folders for tests, written inline and removed afterwards. */
import { mkdir, mkdtemp, rm, writeFile, chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface Tree extends AsyncDisposable {
  /** Absolute path of the folder. */
  readonly path: string;
  /** Absolute path of something in it. */
  readonly at: (...parts: readonly string[]) => string;
}

/** Content of files by relative path; `#!` at the start makes a file executable. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

export async function writeTree(root: string, files: Files): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    const target = join(root, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, content);
    if (typeof content === 'string' && content.startsWith('#!')) await chmod(target, 0o755);
  }
}

/** A temporary folder with these files: `await using box = await tree({ Manifest: '' })`. */
export async function tree(files: Files = {}): Promise<Tree> {
  const path = await mkdtemp(join(tmpdir(), 'curlew-test-'));
  await writeTree(path, files);
  return {
    path,
    at: (...parts) => join(path, ...parts),
    [Symbol.asyncDispose]: async () => rm(path, { recursive: true, force: true, maxRetries: 3 }),
  };
}

/** The same in a folder of the caller's, which is emptied first and stays. */
export async function keptTree(path: string): Promise<Tree> {
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { recursive: true });
  return { path, at: (...parts) => join(path, ...parts), [Symbol.asyncDispose]: async () => undefined };
}
