/** The declarations in the npm package: those that the types of the library need, without another package. */
import { copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';

const ENTRIES = ['index.d.ts', 'conformance/conformance.d.ts'];
/** The only package whose types are part of the library's, in one file. */
const VALIBOT = { from: 'node_modules/valibot/dist/index.d.mts', to: 'valibot.d.ts' };
const SPECIFIER = /(?<=\bfrom |\bimport\()(["'])([^"']+)\1/g;

/** Removes other declarations of the compiler from `root`/dist, and has the rest name JavaScript, which is what Node resolves. */
export async function trimTypes(root: string): Promise<void> {
  const dist = join(root, 'dist');
  const needed = new Map<string, string>();
  const next = [...ENTRIES];
  for (let path = next.pop(); path !== undefined; path = next.pop()) {
    if (needed.has(path)) continue;
    const folder = posix.dirname(path);
    const text = (await readFile(join(dist, path), 'utf8')).replaceAll(SPECIFIER, (_, _quote, name: string) => {
      if (name === 'valibot') return `'./${posix.relative(folder, 'valibot.js')}'`;
      if (name.startsWith('.')) next.push(posix.join(folder, name.replace(/\.ts$/, '.d.ts')));
      else if (!name.startsWith('node:'))
        throw new Error(`dist/${path}: the npm package does not bring the types of ${name}`);
      return `'${name.replace(/\.ts$/, '.js')}'`;
    });
    needed.set(path, text);
  }
  for (const path of await readdir(dist, { recursive: true })) {
    if (path.endsWith('.d.ts') && !needed.has(path)) await rm(join(dist, path));
  }
  for (const [path, text] of needed) await writeFile(join(dist, path), text);
  await copyFile(join(root, VALIBOT.from), join(dist, VALIBOT.to));
}
