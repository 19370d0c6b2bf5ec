/** Runs a repository in kURL's manner through curlew and prints what came of it; scripts/real-kurl has the options. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from '../components/support/programs.ts';
import { kurlPrograms } from './kurl-programs.ts';
import { formatDetails, formatTable, STAGES, type Explanation, type Stage } from './report.ts';
import { runRepository, type RunOptions } from './run.ts';

const { values, positionals } = parseArgs({
  options: {
    json: { type: 'string' },
    only: { type: 'string', multiple: true, default: [] },
    stage: { type: 'string', default: 'lint,plan,build,hooks,objects' },
    newest: { type: 'boolean', default: false },
    explained: { type: 'string', default: join(ROOT, 'test/real-kurl/explained.json') },
    specs: { type: 'string', default: join(ROOT, 'test/real-kurl/specs.json') },
    programs: { type: 'string' },
    keep: { type: 'string' },
  },
  allowPositionals: true,
});

function stagesOf(text: string): readonly Stage[] {
  const names = text.split(',');
  const unknown = names.find((name) => !STAGES.some((stage) => stage === name));
  if (unknown !== undefined) throw new Error(`--stage: ${unknown} is none of ${STAGES.join(', ')}`);
  return STAGES.filter((stage) => names.includes(stage));
}

const [tree] = positionals;
if (tree === undefined || positionals.length > 1) throw new Error('one TREE is needed; see scripts/real-kurl --help');
const root = resolve(tree);
const stages = stagesOf(values.stage);
const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};
const box = values.keep === undefined ? await mkdtemp(join(tmpdir(), 'real-kurl-')) : resolve(values.keep);
await mkdir(box, { recursive: true });
try {
  const known = JSON.parse(await readFile(values.explained, 'utf8')) as readonly Explanation[];
  const specs = JSON.parse(await readFile(values.specs, 'utf8')) as RunOptions['specs'];
  const bin = stages.includes('objects') ? (values.programs ?? (await kurlPrograms(root, say))) : undefined;
  const only = values.only.flatMap((text) => text.split(','));
  const judged = await runRepository({ root, only, stages, newest: values.newest, bin, box, specs, known, say });
  if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(judged, undefined, 2)}\n`);
  console.log(`${formatTable(judged, stages)}\n\n${formatDetails(judged)}`);
  process.exitCode = judged.some(({ unexplained }) => unexplained.length > 0) ? 1 : 0;
} finally {
  if (values.keep === undefined) await rm(box, { recursive: true, force: true });
}
