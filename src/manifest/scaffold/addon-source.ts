/** Reads the source of a new add-on: a file of resources, or a chart, which helm renders. */
import { stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { Context } from '../../core/context.ts';
import { CurlewError, noSuchFile, ifExists } from '../../core/errors.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { tryProgram } from '../../platform/process/run-program.ts';

interface Source {
  readonly text: string;
  /** Name of the text in messages. */
  readonly path: string;
  readonly chart: { readonly name: string; readonly version: string } | undefined;
}

export type ReadOptions = Pick<Context, 'cwd' | 'env' | 'signal'>;

const MAX_BYTES = 8 * 1024 * 1024;
const CHART_YAML = 'Chart.yaml';
const SOME = 1024 * 1024;

async function kindOf(path: string): Promise<'file' | 'folder' | 'other' | 'nothing'> {
  const stats = await ifExists(`read ${path}`, stat(path));
  if (stats === undefined) return 'nothing';
  if (stats.isDirectory()) return 'folder';
  return stats.isFile() ? 'file' : 'other';
}

/**
 * Reads `from`: a YAML file, a `Chart.yaml`, the folder of a chart, or a chart archive. `name` is the release and namespace
 * for which a chart is rendered. Throws `NOT_FOUND`, `FILE_UNUSABLE`, `UNSUPPORTED` if helm is required and not installed,
 * `PROGRAM_FAILED` if helm fails.
 */
export async function readAddonSource(from: string, name: string, options: ReadOptions): Promise<Source> {
  const path = resolve(options.cwd, from);
  const kind = await kindOf(path);
  if (kind === 'nothing') throw noSuchFile(`read ${from}`);
  if (kind === 'other') throw new CurlewError('FILE_UNUSABLE', `cannot read ${from}: not a regular file`);
  const chart = await chartAt(path, kind, from);
  if (chart !== undefined) return renderChart(chart, from, name, options);
  const bytes = await readLimited(path, MAX_BYTES);
  return { text: bytes.toString(), path: from, chart: undefined };
}

async function chartAt(path: string, kind: 'file' | 'folder', from: string): Promise<string | undefined> {
  if (kind === 'folder') {
    if ((await kindOf(join(path, CHART_YAML))) === 'file') return path;
    throw new CurlewError('FILE_UNUSABLE', `cannot read ${from}: a folder without ${CHART_YAML} is not a chart`, {
      hint: 'use one file: join several with cat, or render them with kubectl kustomize',
    });
  }
  if (basename(path) === CHART_YAML) return dirname(path);
  return /\.(?:tgz|tar\.gz)$/.test(path) ? path : undefined;
}

async function renderChart(chart: string, from: string, name: string, options: ReadOptions): Promise<Source> {
  const { cwd, env, signal } = options;
  const doing = `render the chart ${from}`;
  const helm = async (args: readonly string[], outputLimit: number): Promise<string> => {
    return tryProgram('helm', args, { cwd, env, outputLimit, signal }, ({ stdout, lastLines, error }) => {
      if (error === undefined) return stdout;
      if (error.problem === 'missing') {
        throw new CurlewError('UNSUPPORTED', `cannot ${doing}: helm is not installed`, {
          hint:
            'install helm, or render the chart elsewhere and use the result: ' +
            `helm template ${name} CHART --namespace ${name} --include-crds > ${name}.yaml, then --from ${name}.yaml`,
        });
      }
      if (error.problem === 'output') {
        throw new CurlewError('FILE_UNUSABLE', `cannot read from helm: more than ${outputLimit} bytes`);
      }
      if (error.problem === 'unusable') throw error;
      throw new CurlewError('PROGRAM_FAILED', `cannot ${doing}: helm reported: ${lastLines.join('; ')}`, {
        hint: 'fetch dependencies with helm dependency build; render charts that require values manually',
      });
    });
  };
  const about = await helm(['show', 'chart', chart], SOME);
  const text = await helm(['template', name, chart, '--namespace', name, '--include-crds'], MAX_BYTES);
  return { text, path: from, chart: { name: valueOf(about, 'name'), version: valueOf(about, 'version') } };
}

/** A top-level text of a Chart.yaml as helm prints it. */
function valueOf(about: string, key: string): string {
  const [, value = ''] = new RegExp(`^${key}:[ \\t]*["']?([^"'\\s]*)["']?[ \\t]*$`, 'm').exec(about) ?? [];
  return value;
}
