/** The output of a program of the spec's choice. It runs in a temporary folder. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { byKey, finite, type Read } from '../../../core/schema.ts';
import { fileNameProblem, pathProblem } from '../../../core/layout.ts';
import { readLimited } from '../../../platform/files/read-limited.ts';
import { makeTemporary } from '../../../platform/files/temporary.ts';
import { CollectProblem, DEFAULT_LIMIT_MS, type Collector, type Host } from '../collector.ts';
import { limitOf } from '../limit.ts';
import { runCollectorProgram } from '../program.ts';
import type { Settings } from '../settings.ts';

const facts = v.object({
  exitCode: finite,
  stdout: v.string(),
  stderr: v.string(),
  /** Files in its output folder, by path. */
  files: byKey(v.string()),
});
export type RunFacts = Read<typeof facts>;

const OUTPUT_LIMIT = 1 << 20;
const MOST_FILES = 100;
/** Variables that a program always gets. */
const ALWAYS = ['PATH', 'KUBECONFIG', 'PWD'];

export const run: Collector<RunFacts> = {
  kind: 'run',
  defaultName: 'run-host',
  shared: false,
  isProgram: true,
  acts: true,
  settings: {
    command: 'text!',
    args: 'texts',
    outputDir: 'text',
    input: 'textmap',
    env: 'texts',
    inheritEnvs: 'texts',
    ignoreParentEnvs: 'yesno',
    timeout: 'text',
  },
  limitMs: (settings) => limitOf(settings, DEFAULT_LIMIT_MS),
  collect: async (settings, host) => {
    const folder = makeTemporary('preflight');
    try {
      return await runIn(folder, settings, host);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
  facts,
};

async function runIn(folder: string, settings: Settings, host: Host): Promise<RunFacts> {
  const env: Record<string, string | undefined> = { ...environment(settings, host.env) };
  const outputDir = settings.text('outputDir');
  const output = outputDir === undefined ? undefined : join(folder, safe(outputDir, pathProblem(outputDir)));
  if (output !== undefined) {
    await mkdir(output, { recursive: true });
    env['TS_OUTPUT_DIR'] = output;
  }
  const input = settings.textMap('input');
  if (input !== undefined) {
    const into = join(folder, 'input');
    await mkdir(into, { recursive: true });
    for (const [name, text] of Object.entries(input)) {
      await writeFile(join(into, safe(name, fileNameProblem(name))), text, { flag: 'wx' });
    }
    env['TS_INPUT_DIR'] = into;
  }
  const command = settings.text('command') ?? '';
  const options = { cwd: folder, env, outputLimit: OUTPUT_LIMIT };
  const { status, stdout, stderr } = await runCollectorProgram(command, settings.texts('args') ?? [], host, options);
  return { exitCode: status, stdout, stderr, files: output === undefined ? {} : await filesIn(output) };
}

function safe(name: string, problem: string | undefined): string {
  if (problem === undefined) return name;
  throw new CollectProblem(`the name ${JSON.stringify(name.slice(0, 80))} ${problem}`);
}

function environment(settings: Settings, own: Host['env']): Readonly<Record<string, string | undefined>> {
  const inherited = settings.texts('inheritEnvs');
  const some = (names: readonly string[]): Record<string, string | undefined> =>
    Object.fromEntries(names.map((name) => [name, own[name]]));
  const missing = inherited?.find((name) => own[name] === undefined);
  if (missing !== undefined && !settings.yes('ignoreParentEnvs')) {
    throw new CollectProblem(`the environment has no ${missing}`);
  }
  const base = settings.yes('ignoreParentEnvs')
    ? some(ALWAYS)
    : inherited === undefined
      ? own
      : some([...ALWAYS, ...inherited]);
  const added = (settings.texts('env') ?? []).map((word) => {
    const [, name, value] = /^([^=]+)=(.+)$/s.exec(word) ?? [];
    if (name === undefined || value === undefined) throw new CollectProblem('an entry of env is not NAME=value');
    return [name, value] as const;
  });
  return { ...base, ...Object.fromEntries(added) };
}

async function filesIn(folder: string): Promise<Readonly<Record<string, string>>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files: Record<string, string> = {};
  for (const entry of entries.filter((one) => one.isFile()).slice(0, MOST_FILES)) {
    const path = join(entry.parentPath, entry.name);
    files[path.slice(folder.length + 1)] = (await readLimited(path, OUTPUT_LIMIT)).toString('utf8');
  }
  return files;
}
