/** Installing packages from memory into a folder, for tests: hooks unconfined, images left alone. */
import { readFile, rm } from 'node:fs/promises';
import { memorySource, readIndex } from '../../src/formats/archive/read.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import { execute } from '../../src/runtime/run/execute.ts';
import { plainPlace } from '../../src/runtime/node/node-place.ts';
import { prepare } from '../../src/runtime/prepare/prepare.ts';
import { archivePackages, type SourcePackage } from '../../src/runtime/node/source.ts';
import type { TestPackage } from './bundles.ts';
import { never } from './context.ts';
import type { CurlewOptions } from './curlew.ts';
import type { TestAddon } from './node-bundles.ts';
import type { Tree } from './tree.ts';
import type { RunResult } from '../../src/runtime/run/run-result.ts';
import type { RunRequest } from '../../src/runtime/prepare/request.ts';

const SCRIPTS = `${import.meta.dirname}/../../scripts`;

export async function packagesOf(bytes: Uint8Array): Promise<readonly SourcePackage[]> {
  const source = memorySource('bundle.tar.gz', bytes);
  return archivePackages(source, await readIndex(source, { signal: never }), { signal: never });
}

export interface Given extends Partial<RunRequest> {
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
  readonly events?: ProgressEvent[];
}

/** How tests remove add-ons, where they say nothing else. */
const PLAIN_REMOVAL = { forgotten: [], keepGoing: false, keepData: false, pruneImages: false };

/** The request of {@link run}. */
export function requestOf(
  box: Tree,
  packages: readonly SourcePackage[],
  { settings = {}, signal: _signal, events: _events, ...request }: Given = {},
): RunRequest {
  const own = packages.map((source) => ({ source, settings: settings[source.ref.name] ?? {} }));
  const removes = request.kind === 'reset' || request.kind === 'uninstall';
  return {
    kind: 'install',
    place: plainPlace(box.at('node')),
    scripts: SCRIPTS,
    packages: removes ? [] : own,
    removal: removes ? { ...PLAIN_REMOVAL, packages: own } : undefined,
    variables: [],
    env: { PATH: process.env['PATH'], TRACE: box.at('trace') },
    reapply: false,
    skipImages: 'a test',
    hookLimit: undefined,
    command: undefined,
    ...request,
  };
}

/** Installs these packages below the folder, or removes them, hooks unconfined, images left alone. */
export async function run(box: Tree, packages: readonly SourcePackage[], given: Given = {}): Promise<RunResult> {
  const { signal = never, events = [] } = given;
  const report = (event: ProgressEvent): void => void events.push(event);
  await using prepared = await prepare(requestOf(box, packages, given), { report, signal });
  return await execute(prepared, { report, signal });
}

/** An add-on that writes down which of its hooks ran. */
export function tracer(name: string, more = '', version = '1.0.0'): TestAddon {
  const hooks = ['_pre_init', '', '_already_applied', '_post_init', '_outro'];
  const lines = hooks.map((hook) => `${name}${hook}() { echo ${name}${hook} $CURLEW_ATTEMPT >>"$TRACE"; }`);
  return {
    name,
    version,
    files: { Manifest: '', 'install.sh': `${lines.join('\n')}\n${more}\n`, 'data/x.yaml': 'x: 1\n' },
  };
}

/** A package for stores with the files of a tracer, and more of them. */
export function tracerPackage(
  name: string,
  version = '1.0.0',
  files: Readonly<Record<string, Buffer | string>> = {},
  hooks = '',
): TestPackage {
  const all = [...Object.entries(tracer(name, hooks).files), ...Object.entries(files)];
  return { name, version, files: all.map(([path, data]) => ({ path, data })) };
}

/** For commands that run hooks in this box: tracers write into it. */
export function traced(box: Tree, env: Readonly<Record<string, string>> = {}): CurlewOptions {
  return { cwd: box.path, env: { TRACE: box.at('trace'), ...env } };
}

/** What tracers wrote since the last look: function and attempt. */
export async function trace(box: Tree): Promise<readonly string[]> {
  const text = await readFile(box.at('trace'), 'utf8').catch(() => '');
  await rm(box.at('trace'), { force: true });
  return text.split('\n').filter((line) => line !== '');
}
