/**
 * Runs a repository in kURL's manner through curlew and prints what came of it: scripts/real-kurl.
 * Options are in the head of that script.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { buildAll, lintAll, planAll, readRepository } from './packaging.ts';
import { formatDetails, formatTable, judge, STAGES, type Explanation, type Outcome, type Stage } from './report.ts';

const { values, positionals } = parseArgs({
  options: {
    json: { type: 'string' },
    only: { type: 'string', multiple: true, default: [] },
    stage: { type: 'string', default: 'lint,plan,build,hooks,objects' },
    newest: { type: 'boolean', default: false },
    explained: { type: 'string', default: join(import.meta.dirname, 'explained.json') },
    keep: { type: 'string' },
  },
  allowPositionals: true,
});

const [tree, ...more] = positionals;
if (tree === undefined) throw new Error('TREE is missing; see scripts/real-kurl --help');
const stages = stagesOf(values.stage);
const only = [...values.only, ...more].flatMap((text) => text.split(','));

function stagesOf(text: string): readonly Stage[] {
  const names = text.split(',');
  const unknown = names.find((name) => !STAGES.some((stage) => stage === name));
  if (unknown !== undefined) throw new Error(`--stage: ${unknown} is none of ${STAGES.join(', ')}`);
  return STAGES.filter((stage) => names.includes(stage));
}

const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

async function run(box: string): Promise<readonly Outcome[]> {
  const all = await readRepository(resolve(tree ?? ''), only);
  const repository = values.newest ? { ...all, versions: all.newest } : all;
  const outcomes: Outcome[] = [];
  if (stages.includes('lint')) outcomes.push(...(await lintAll(repository)));
  if (stages.includes('plan')) outcomes.push(...(await planAll(repository, box)));
  if (stages.some((stage) => stage !== 'lint' && stage !== 'plan')) {
    say(`building ${repository.newest.length} packages`);
    const packages = await buildAll(repository, repository.newest, box);
    outcomes.push(...packages.outcomes);
  }
  return outcomes;
}

const box = values.keep === undefined ? await mkdtemp(join(tmpdir(), 'real-kurl-')) : resolve(values.keep);
await mkdir(box, { recursive: true });
try {
  const outcomes = await run(box);
  const known = JSON.parse(await readFile(values.explained, 'utf8')) as readonly Explanation[];
  const judged = outcomes.filter(({ stage }) => stages.includes(stage)).map((outcome) => judge(outcome, known));
  if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(judged, undefined, 2)}\n`);
  console.log(formatTable(judged, stages));
  console.log(`\n${formatDetails(judged)}`);
  process.exitCode = judged.some(({ unexplained }) => unexplained.length > 0) ? 1 : 0;
} finally {
  if (values.keep === undefined) await rm(box, { recursive: true, force: true });
}
