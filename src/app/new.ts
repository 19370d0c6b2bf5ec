/** Creates an add-on with everything that one for customers' machines needs. */
import { join, relative, resolve } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { isAddonName } from '../core/ref.ts';
import type { LintReport } from '../manifest/lint.ts';
import { makeAddon, type MadeAddon } from '../manifest/scaffold/new-addon.ts';
import type { Context } from '../core/context.ts';
import { lintCreated } from './lint.ts';
import { ownScripts } from '../own/scripts.ts';

export interface NewAddonRequest {
  readonly name: string;
  /** First version; default: that of the chart, or 0.1.0. */
  readonly version?: string | undefined;
  /** YAML of resources, a Chart.yaml, or the folder or archive of a chart. */
  readonly from?: string | undefined;
  /** Comma-separated hooks, or `all`. */
  readonly hooks?: readonly string[] | undefined;
  /** URL for generate.sh: of YAML with `{version}`, or of a chart. */
  readonly upstream?: string | undefined;
  /** Source of the newest version for generate.sh. */
  readonly newest?: string | undefined;
  /** Folder for `addons`; default: the current one. */
  readonly dir?: string | undefined;
}

export interface NewAddon extends MadeAddon {
  /** Its folder, relative to the current one. */
  readonly shown: string;
  readonly lint: LintReport;
}

/** Overwrites nothing: `FILE_EXISTS` if a file exists; then nothing is created. */
export async function newAddon(request: NewAddonRequest, context: Context): Promise<NewAddon> {
  const { env, cwd, signal } = context;
  const { name, version, from, hooks = [], upstream, newest, dir = '.' } = request;
  if (!isAddonName(name)) {
    throw new CurlewError('USAGE', `new: ${JSON.stringify(name.slice(0, 120))} is not a name for an add-on`, {
      hint: 'use lower-case letters, digits, ".", "_" and "-"; the first and the last is a letter or a digit',
    });
  }
  const root = resolve(cwd, dir);
  const given = { name, version, from, hooks, upstream, newest, root };
  const made = await makeAddon(given, { cwd, env, samples: join(ownScripts(), 'new'), signal });
  const lint = await lintCreated(root, [`addons/${name}/${made.version}`], context);
  return { ...made, shown: relative(cwd, made.folder) || '.', lint };
}
