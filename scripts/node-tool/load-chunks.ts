/** How the executable for nodes runs the chunks of the command, which it contains as texts of CommonJS. */
import { compileFunction } from 'node:vm';

/**
 * A `require` that compiles and runs a chunk, such as `./main.js`, when it is first asked for, and once; whatever has
 * another name is Node's. A chunk that imports one which is about to run sees what that declares, as modules of ESM do:
 * esbuild puts the getters of its exports before all else.
 */
export function chunkLoader(
  textOf: (name: string) => string,
  nodeRequire: (name: string) => unknown,
): (name: string) => unknown {
  const chunks = new Map<string, { exports: unknown }>();
  return function requireChunk(name) {
    if (!name.startsWith('./')) return nodeRequire(name);
    const known = chunks.get(name);
    if (known !== undefined) return known.exports;
    const chunk = { exports: {} };
    chunks.set(name, chunk);
    const filename = name.slice(2);
    try {
      compileFunction(textOf(filename), ['module', 'require'], { filename })(chunk, requireChunk);
    } catch (error) {
      // Whoever asks again gets the error again, not half a chunk.
      chunks.delete(name);
      throw error;
    }
    return chunk.exports;
  };
}
