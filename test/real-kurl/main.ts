/** Runs a repository in kURL's manner through curlew and prints what came of it; scripts/real-kurl has the options. */
import { execa } from 'execa';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { importRepository } from '../../src/app/import.ts';
import { createContext } from '../../src/index.ts';
import { compareText } from '../../src/core/ref.ts';
import { ROOT } from '../components/support/programs.ts';
import { kurlPrograms } from './kurl-programs.ts';
import {
  formatDetails,
  formatTable,
  judge,
  STAGES,
  type Explanation,
  type Judged,
  type RunReport,
  type Stage,
} from './report.ts';
import { runRepository, type RunOptions } from './run.ts';

const { values, positionals } = parseArgs({
  options: {
    json: { type: 'string' },
    only: { type: 'string', multiple: true, default: [] },
    stage: { type: 'string', default: 'lint,plan,build,hooks,objects' },
    newest: { type: 'boolean', default: false },
    merge: { type: 'boolean', default: false },
    explained: { type: 'string', default: join(ROOT, 'test/real-kurl/explained.json') },
    specs: { type: 'string', default: join(ROOT, 'test/real-kurl/specs.json') },
    programs: { type: 'string' },
    keep: { type: 'string' },
  },
  allowPositionals: true,
});

function wrong(what: string): never {
  process.stderr.write(`error: ${what}; see scripts/real-kurl --help\n`);
  process.exit(2);
}

function stagesOf(text: string): readonly Stage[] {
  const names = text.split(',');
  const unknown = names.find((name) => !STAGES.some((stage) => stage === name));
  if (unknown !== undefined) wrong(`--stage: ${unknown} is none of ${STAGES.join(', ')}`);
  return STAGES.filter((stage) => names.includes(stage));
}

/** Rows of an earlier run that this one has not made again, judged again. */
async function keptRows(file: string, rows: readonly Judged[]): Promise<readonly Judged[]> {
  const { rows: earlier } = JSON.parse(await readFile(file, 'utf8')) as RunReport;
  const isNew = ({ stage, addon }: Judged): boolean => rows.some((row) => row.stage === stage && row.addon === addon);
  return earlier.filter((one) => !isNew(one)).map((one) => judge(one, known));
}

const [tree] = positionals;
if (tree === undefined || positionals.length > 1) wrong('one TREE is needed');
const root = resolve(tree);
const known = JSON.parse(await readFile(values.explained, 'utf8')) as readonly Explanation[];
const stages = stagesOf(values.stage);
const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};
const box = values.keep === undefined ? await mkdtemp(join(tmpdir(), 'real-kurl-')) : resolve(values.keep);
await mkdir(box, { recursive: true });
try {
  const specs = JSON.parse(await readFile(values.specs, 'utf8')) as RunOptions['specs'];
  const bin = stages.includes('objects') ? (values.programs ?? (await kurlPrograms(root, say))) : undefined;
  const only = values.only.flatMap((text) => text.split(','));
  const rows = await runRepository({ root, only, stages, newest: values.newest, bin, box, specs, known, say });
  const { stdout, exitCode } = await execa('git', ['-C', root, 'rev-parse', 'HEAD'], { reject: false });
  const { sums: imported } = await importRepository({ path: root }, createContext());
  const report: RunReport = { commit: exitCode === 0 ? stdout : undefined, stages, imported, rows };
  if (values.json !== undefined) {
    const kept = values.merge ? await keptRows(values.json, rows) : [];
    const merged = [...kept, ...rows].toSorted((a, b) => compareText(a.addon, b.addon));
    const named = STAGES.filter((stage) => merged.some((one) => one.stage === stage));
    await writeFile(values.json, `${JSON.stringify({ ...report, stages: named, rows: merged }, undefined, 2)}\n`);
  }
  console.log([formatTable(report), '', ...formatDetails(rows, { remarks: true })].join('\n'));
  process.exitCode = rows.some(({ unexplained }) => unexplained.length > 0) ? 1 : 0;
} finally {
  if (values.keep === undefined) await rm(box, { recursive: true, force: true });
}
