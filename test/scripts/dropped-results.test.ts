/** What a program's end is returned in is looked at: a failure is never taken for a success. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('results of programs');
const SRC = join(import.meta.dirname, '../../src');
/** Functions that return how a program ended, instead of throwing if it failed. Those that throw may be called for their effect. */
const RETURNING = ['tryProgram', 'runClient', 'runCollectorProgram', 'callKubectl'];
const CALL = new RegExp(String.raw`^(.*)\b(?:${RETURNING.join('|')})\(`);
/** The result, or the fields that say how it ended. Lint refuses variables that are not used. */
const LOOKED_AT = /(?:const (?:\w+|\{[^}]*\b(?:error|status)\b[^}]*\}) = await |return \(await |function )$/;
/** What a program that fails has printed is enough here. */
const OUTPUT_ONLY = ['const { stdout } = await runClient('];

async function droppedIn(file: string): Promise<readonly string[]> {
  const lines = (await readFile(join(SRC, file), 'utf8')).split('\n');
  return lines.flatMap((line, place) => {
    const before = CALL.exec(line)?.[1];
    if (before === undefined || LOOKED_AT.test(before) || OUTPUT_ONLY.some((one) => line.includes(one))) return [];
    return [`src/${file}:${place + 1}: ${line.trim()}`];
  });
}

test('each caller looks at how the program ended', async () => {
  const files = (await readdir(SRC, { recursive: true })).filter((path) => path.endsWith('.ts'));
  assert.equal((await Promise.all(files.map(droppedIn))).flat(), []);
});

test.run();
