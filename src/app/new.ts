/** Creates an add-on with everything that one for customers' machines needs. */
import { join, relative, resolve } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { isAddonName } from '../core/ref.ts';
import type { LintReport } from '../manifest/lint.ts';
import { makeAddon, type MadeAddon } from '../manifest/scaffold/new-addon.ts';
import { lintCreated } from './lint.ts';
import { ownScripts } from '../own/scripts.ts';
import { NEW } from '../requests/repository.ts';
import { useCase } from '../core/request.ts';

export interface NewAddon extends MadeAddon {
  /** Its folder, relative to the current one. */
  readonly shown: string;
  readonly lint: LintReport;
}

/** Overwrites nothing: `FILE_EXISTS` if a file exists; then nothing is created. */
export const newAddon = useCase(NEW, async (request, context): Promise<NewAddon> => {
  const { env, cwd, signal } = context;
  const { name, version, from, hooks = [], upstream, newest, template, dir = '.' } = request;
  if (!isAddonName(name)) {
    throw new CurlewError('USAGE', `new: ${JSON.stringify(name.slice(0, 120))} is not a name for an add-on`, {
      hint: 'use at most 100 lower-case letters, digits, ".", "_" and "-"; the first and the last is a letter or a digit',
    });
  }
  const root = resolve(cwd, dir);
  const hasTemplate = template === true || (upstream ?? newest) !== undefined;
  const options = { name, version, from, hooks, upstream, newest, hasTemplate, root };
  const made = await makeAddon(options, { cwd, env, samples: join(ownScripts(), 'new'), signal });
  const lint = await lintCreated(root, [`addons/${name}/${made.version}`], context);
  return { ...made, shown: relative(cwd, made.folder) || '.', lint };
});
