/** Runs the generator of an add-on's template, and finds the versions that it created. */
import { constants } from 'node:fs';
import { access, lstat, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Context } from '../../core/context.ts';
import { CurlewError, ifExists } from '../../core/errors.ts';
import { reportStep } from '../../core/events.ts';
import { compareVersions, isAddonName, isVersion } from '../../core/ref.ts';
import { nearest } from '../../core/nearest.ts';
import { ADDON_TREES } from '../find-addons.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { makeTemporary } from '../../platform/files/temporary.ts';
import { runProgram } from '../../platform/process/run-program.ts';

export interface GenerateOptions extends Pick<Context, 'env' | 'report' | 'signal'> {
  /** Version to create; default: the newest of upstream. */
  readonly version: string | undefined;
  /** Recreate an existing version. */
  readonly force: boolean;
}

export interface Generated {
  readonly name: string;
  /** Versions that were created or recreated, in order. */
  readonly made: readonly string[];
  /** Outputs of the generator for a workflow: `<name>_version=…`. */
  readonly outputs: Readonly<Record<string, string>>;
}

/** File names in order of preference; kURL's repository has both. */
const GENERATORS = ['generate.sh', 'script.sh'];
const OUTPUT_LIMIT = 1024 * 1024;

async function namesIn(folder: string): Promise<readonly string[]> {
  return (await ifExists(`list ${folder}`, readdir(folder))) ?? [];
}

/** Names of the add-ons in `root` with a generator, in code units. */
export async function findTemplates(root: string): Promise<readonly string[]> {
  const names = (await Promise.all(ADDON_TREES.map(async (tree) => namesIn(join(root, tree))))).flat();
  const templates = await Promise.all(
    [...new Set(names.filter(isAddonName))].map(async (name) =>
      (await generatorOf(root, name)) === undefined ? [] : [name],
    ),
  );
  return templates.flat().toSorted();
}

/** The first one of an add-on, relative to `root`. */
async function generatorOf(
  root: string,
  name: string,
): Promise<{ readonly folder: string; readonly file: string } | undefined> {
  for (const tree of ADDON_TREES) {
    const folder = `${tree}/${name}`;
    const names = new Set(await namesIn(join(root, folder, 'template')));
    const file = GENERATORS.find((one) => names.has(one));
    if (file !== undefined) return { folder, file };
  }
  return undefined;
}

/** The folder of an add-on, relative to `root`. */
async function folderOf(root: string, name: string): Promise<string | undefined> {
  for (const tree of ADDON_TREES) if ((await namesIn(join(root, tree))).includes(name)) return `${tree}/${name}`;
  return undefined;
}

/** Versions with a mark that changes if the folder is replaced or changed. */
async function versionsOf(folder: string): Promise<ReadonlyMap<string, string>> {
  const versions = new Map<string, string>();
  for (const name of (await namesIn(folder)).filter((one) => isVersion(one) && one !== 'template')) {
    const stats = await lstat(join(folder, name), { bigint: true }).catch(() => undefined);
    if (stats?.isDirectory() === true) versions.set(name, `${stats.ino} ${stats.ctimeNs}`);
  }
  return versions;
}

/**
 * Runs `template/generate.sh` of the add-on in its folder to its end; each line that it prints is an event. Throws
 * `NOT_FOUND` without a generator, `PACKAGE_INVALID` for an invalid version, `PROGRAM_FAILED` with the status and the last
 * lines if it fails.
 */
export async function generateAddon(root: string, name: string, options: GenerateOptions): Promise<Generated> {
  const { version, force, report } = options;
  const generator = isAddonName(name) ? await generatorOf(root, name) : undefined;
  if (generator === undefined) {
    const near = nearest(name, await findTemplates(root));
    const shown = JSON.stringify(name.slice(0, 120));
    const folder = isAddonName(name) ? await folderOf(root, name) : undefined;
    if (folder !== undefined) {
      throw new CurlewError(
        'NOT_FOUND',
        `cannot generate a version of ${name}: ${folder} has no template/generate.sh`,
        {
          hint: `copy the folder of a version in ${folder} to that of the next one, and change the version in its files`,
        },
      );
    }
    throw new CurlewError('NOT_FOUND', `no add-on ${shown} with a template/generate.sh in ${root}`, {
      hint: near === undefined ? 'curlew new creates an add-on with one' : `did you mean "${near}"?`,
    });
  }
  if (version !== undefined && !isVersion(version)) {
    throw new CurlewError('PACKAGE_INVALID', `${name}: not a version: ${JSON.stringify(version.slice(0, 120))}`);
  }
  const { file } = generator;
  const folder = join(root, generator.folder);
  const args = [...(version === undefined ? [] : [`--version=${version}`]), ...(force ? ['--force'] : [])];
  const shown = `${generator.folder}/template/${file}`;
  return reportStep(
    report,
    { id: name, title: `${shown} ${args.join(' ')}`.trim() },
    async () => {
      const before = await versionsOf(folder);
      const outputs = await run(join(folder, 'template'), file, args, { name, shown, ...options });
      const after = await versionsOf(folder);
      const made = [...after].filter(([one, mark]) => before.get(one) !== mark).map(([one]) => one);
      return { name, made: made.toSorted(compareVersions), outputs };
    },
    ({ made }) => (made.length === 0 ? 'nothing new' : `created ${made.join(', ')}`),
  );
}

interface RunOptions extends GenerateOptions {
  readonly name: string;
  readonly shown: string;
}

async function run(
  template: string,
  file: string,
  args: readonly string[],
  { name, shown, env, report, signal }: RunOptions,
): Promise<Readonly<Record<string, string>>> {
  const own = makeTemporary('generate');
  try {
    const output = join(own, 'output');
    await writeFile(output, '');
    // Some templates of kURL are not marked executable.
    const [program, ...first] = (await canRun(join(template, file))) ? [`./${file}`] : ['bash', file];
    await runProgram(program ?? 'bash', [...first, ...args], {
      cwd: template,
      env: { ...env, GITHUB_OUTPUT: output },
      line: (text) => report({ type: 'step-log', id: name, text }),
      doing: shown,
      signal,
    });
    return outputsIn((await readLimited(output, OUTPUT_LIMIT)).toString());
  } finally {
    await rm(own, { recursive: true, force: true });
  }
}

async function canRun(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Parses `name=value` lines; ignores the delimiter form for multi-line values. */
function outputsIn(text: string): Readonly<Record<string, string>> {
  const lines = text.split('\n').map((line) => /^([A-Za-z_][A-Za-z0-9_-]*)=(.*)$/.exec(line));
  return Object.fromEntries(lines.flatMap((match) => (match === null ? [] : [[match[1] ?? '', match[2] ?? '']])));
}
