/** Generates the next version of an add-on from its template. */
import { appendFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileError } from '../core/errors.ts';
import type { LintReport } from '../manifest/lint.ts';
import { findTemplates, generateAddon, type Generated } from '../manifest/scaffold/generate.ts';
import { lintCreated } from './lint.ts';
import { GENERATE_ONE, LIST_TEMPLATES } from '../requests/repository.ts';
import { useCase } from '../core/request.ts';

export interface GeneratedAddon extends Generated {
  /** Findings of the new versions; absent if there are none. */
  readonly lint?: LintReport;
}

/** Runs the add-on's generate.sh (or script.sh), passes its outputs to the workflow, and lints the new versions. */
export const generate = useCase(GENERATE_ONE, async (request, context): Promise<GeneratedAddon> => {
  const { signal, report, env, cwd } = context;
  const { addon, version, force = false, dir = '.' } = request;
  const root = resolve(cwd, dir);
  const generated = await generateAddon(root, addon, { version, force, env, report, signal });
  if (generated.made.length === 0) return generated;
  const output = env['GITHUB_OUTPUT'];
  if (output !== undefined && output !== '') await passOn(generated.outputs, output);
  const paths = generated.made.map((one) => `addons/${addon}/${one}`);
  return { ...generated, lint: await lintCreated(root, paths, context) };
});

async function passOn(outputs: Readonly<Record<string, string>>, file: string): Promise<void> {
  const text = Object.entries(outputs).map(([name, value]) => `${name}=${value}\n`);
  try {
    await appendFile(file, text.join(''));
  } catch (error) {
    throw fileError(`write to ${file}`, error);
  }
}

/** Names of all add-ons with a generator; runs none. */
export const listTemplates = useCase(
  LIST_TEMPLATES,
  async ({ dir = '.' }, { cwd }): Promise<{ readonly templates: readonly string[] }> => {
    return { templates: await findTemplates(resolve(cwd, dir)) };
  },
);
