/** Makes and runs the suites of docs/proof.md. usage: scripts/proof [NAME…] */
import { execa } from 'execa';
import { SUITES, versionOf, type ProofSuite } from './docs/proof-page.ts';

const all = Object.entries<ProofSuite>(SUITES);
const names = process.argv.slice(2);
const unknown = names.find((name) => !(name in SUITES));
if (unknown !== undefined) {
  console.error(`error: ${unknown} is no suite: use ${all.map(([name]) => name).join(', ')}`);
  process.exit(64);
}
/** Runs a command whose output is shown; its last line, or undefined if it failed. */
async function lastLine(command: string, args: readonly string[]): Promise<string | undefined> {
  const { exitCode, stdout } = await execa(command, args, {
    stdin: 'ignore',
    stdout: ['inherit', 'pipe'],
    stderr: 'inherit',
    reject: false,
  });
  return exitCode === 0 ? stdout.trimEnd().split('\n').at(-1) : undefined;
}

const chosen = all.filter(([name]) => names.length === 0 || names.includes(name));
await lastLine('scripts/tools', ['prepare', 'default']);
for (const tool of new Set(chosen.map(([, suite]) => suite.tool))) {
  if (tool !== undefined) await lastLine('scripts/tools', [tool]);
}
/** By test file, since some have several suites. Tests of what could not be made are skipped. */
const ends = new Map<string, string | undefined>();
for (const file of new Set(chosen.map(([, suite]) => suite.test))) {
  ends.set(file, await lastLine('scripts/test', ['--all', '--no-check', '--no-tools', file]));
}
const rows: string[] = [];
const short: string[] = [];
for (const [name, suite] of chosen) {
  const last = ends.get(suite.test);
  const ran = last?.endsWith(' 0 failed, 0 skipped') === true;
  if (!ran) short.push(name);
  rows.push([name, versionOf(suite), ran ? suite.says : `FELL SHORT: ${last ?? 'see its output'}`].join('  '));
}
console.log(`\n${rows.join('\n')}`);
console.log(short.length === 0 ? 'every suite says what docs/proof.md says' : `fell short: ${short.join(', ')}`);
process.exitCode = short.length === 0 ? 0 : 1;
