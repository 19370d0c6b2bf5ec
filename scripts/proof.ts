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
const rows: string[] = [];
const short: string[] = [];
for (const [name, suite] of all.filter(([one]) => names.length === 0 || names.includes(one))) {
  const steps = [
    ...(suite.tool === undefined ? [] : [['scripts/tools', suite.tool]]),
    ['scripts/test', '--all', '--no-check', suite.test],
  ];
  let last: string | undefined = '';
  for (const [command = '', ...args] of steps) {
    if (last === undefined) break;
    const { exitCode, stdout } = await execa(command, args, {
      stdin: 'ignore',
      stdout: ['inherit', 'pipe'],
      stderr: 'inherit',
      reject: false,
    });
    last = exitCode === 0 ? stdout.trimEnd().split('\n').at(-1) : undefined;
  }
  const ran = last?.endsWith(' 0 failed, 0 skipped') === true;
  if (!ran) short.push(name);
  rows.push([name, versionOf(suite), ran ? suite.says : `FELL SHORT: ${last ?? 'see its output'}`].join('  '));
}
console.log(`\n${rows.join('\n')}`);
console.log(short.length === 0 ? 'every suite says what docs/proof.md says' : `fell short: ${short.join(', ')}`);
process.exitCode = short.length === 0 ? 0 : 1;
