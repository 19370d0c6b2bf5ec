/**
 * A plan as a document: a dry run shows it, and a later run can be compared with it. It is never executed: a run creates its
 * own plan, and continues only if that is the same.
 */
import { canonicalJson, digestOf, type Digest } from '../../core/digest.ts';
import { asError, CurlewError, errorAbout } from '../../core/errors.ts';
import type { Fields } from '../../core/field.ts';
import { shallowJson } from '../../core/json.ts';
import { compareText, formatRef, type AddonRef } from '../../core/ref.ts';
import type { HostPlan } from '../host/host-plan.ts';
import { readGivenFile } from '../../platform/files/state-file.ts';
import type { PlannedAction, RunPlan } from '../plan/run-plan.ts';
import type { RunView } from '../prepare/request.ts';

/** Everything that a plan is made from. */
export interface PlanBasis {
  /** Version of curlew. */
  readonly tool: string;
  /** By name. */
  readonly packages: readonly (AddonRef & { readonly digest: Digest; readonly settings: Digest })[];
  /** Digest of all variables for hooks. */
  readonly variables: Digest;
  /** Digest of the extracted and applied records. */
  readonly records: Digest;
  /** The last run. */
  readonly lastRun?: string | undefined;
  /** Address of the cluster that hooks of a trial change. */
  readonly cluster?: string | undefined;
}

/** Command-line options that determine the plan, as given; paths are absolute. */
export type SavedOptions = Readonly<Record<string, string | readonly string[] | true>>;

export interface SavedPlan {
  readonly format: 1;
  readonly words: SavedOptions;
  readonly basis: PlanBasis;
  readonly plan: RunPlan;
  /** The state of the machine when the plan was made. */
  readonly host: HostPlan;
}

export function basisOf({ request, packages, records }: RunView, tool: string): PlanBasis {
  const { lastRun, extracted, applied } = records;
  const digests = new Map(packages.map(({ ref, digest }) => [ref.name, digest] as const));
  return {
    tool,
    packages: request.packages
      .map(({ source: { ref, addon }, settings }) => ({
        tree: ref.tree,
        name: ref.name,
        version: ref.version,
        digest: digests.get(ref.name) ?? addon.digest,
        settings: digestOf(canonicalJson(settings)),
      }))
      .toSorted((a, b) => compareText(a.name, b.name)),
    variables: digestOf(canonicalJson(request.variables.toSorted(([a], [b]) => compareText(a, b)))),
    records: digestOf(canonicalJson({ extracted, applied })),
    lastRun,
    cluster: request.place.cluster?.server,
  };
}

/** Changes between two plans, one phrase each; none if they are the same. */
export function whatChanged(before: PlanBasis, now: PlanBasis): readonly string[] {
  const packages = packageChanges(before.packages, now.packages);
  const changes: string[] = [...packages];
  if (before.cluster !== now.cluster)
    changes.push(`the cluster was ${before.cluster ?? 'none'} and is ${now.cluster ?? 'none'}`);
  if (before.tool !== now.tool) changes.push(`curlew was ${before.tool} and is ${now.tool}`);
  // Settings and versions of add-ons are among the variables.
  if (packages.length === 0 && before.variables !== now.variables) changes.push('the settings of the installer spec');
  if (before.records !== now.records) {
    const since = now.lastRun === undefined || now.lastRun === before.lastRun ? '' : `: run ${now.lastRun} ran since`;
    changes.push(`the records of this node${since}`);
  }
  return changes;
}

type PackageBasis = PlanBasis['packages'];

function packageChanges(before: PackageBasis, now: PackageBasis): readonly string[] {
  const gone = before.filter(({ name }) => !now.some((one) => one.name === name));
  return [
    ...now.flatMap((one) => {
      const known = before.find(({ name }) => name === one.name);
      if (known === undefined) return [`${one.name} was not in the plan`];
      if (known.version !== one.version || known.tree !== one.tree) {
        return [`${one.name} was ${known.version} and is ${one.version}`];
      }
      return [
        ...(known.digest === one.digest ? [] : [`the package of ${formatRef(one)}`]),
        ...(known.settings === one.settings ? [] : [`the settings of ${one.name}`]),
      ];
    }),
    ...gone.map(({ name }) => `${name} is only in the plan`),
  ];
}

/** Throws `PLAN_CHANGED` if a run would not do exactly what was planned. */
export function requireSamePlan(saved: SavedPlan, view: RunView, tool: string): void {
  const changed = whatChanged(saved.basis, basisOf(view, tool));
  const actions = canonicalJson(saved.plan) === canonicalJson(view.plan) ? [] : actionChanges(saved.plan, view.plan);
  const all = changed.length > 0 ? changed : actions;
  if (all.length === 0) return;
  const lines = all.slice(0, MAX_LINES).map((line) => `\n${line}`);
  const more = all.length > MAX_LINES ? `\nand ${all.length - MAX_LINES} more` : '';
  throw new CurlewError(
    'PLAN_CHANGED',
    `cannot run the saved plan: these have changed since it was saved:${lines.join('')}${more}`,
    { hint: 'review the new plan with --dry-run, and save it' },
  );
}

const MAX_LINES = 20;

function actionChanges(before: RunPlan, now: RunPlan): readonly string[] {
  const ids = (actions: readonly PlannedAction[]): ReadonlySet<string> => new Set(actions.map(({ id }) => id));
  const [was, is] = [ids(before.actions), ids(now.actions)];
  const changes = [
    ...now.actions.filter(({ id }) => !was.has(id)).map(({ id, because }) => `new action: ${id} (${because})`),
    ...before.actions.filter(({ id }) => !is.has(id)).map(({ id }) => `no longer an action: ${id}`),
  ];
  return changes.length > 0 ? changes : ['the order of the actions, or their reasons'];
}

/** The text of a saved plan; other properties of the object are left out. */
export function formatPlan({ format, words, basis, plan, host }: SavedPlan): string {
  return `${JSON.stringify({ format, words, basis, plan, host }, undefined, 2)}\n`;
}

const LIMIT = 16 << 20;

/** Reads an untrusted plan of a request with these fields. `FILE_UNUSABLE` if any part of it is invalid. */
export async function readPlan(path: string, fields: Fields): Promise<SavedPlan> {
  const text = await readGivenFile(path, LIMIT);
  if (text === undefined) {
    throw new CurlewError('NOT_FOUND', `cannot read ${path}: no such file`, {
      hint: 'curlew install --dry-run --out FILE writes one',
    });
  }
  const bad = errorAbout(
    'FILE_UNUSABLE',
    `cannot read ${path}: not a saved plan`,
    'save it again: curlew install --dry-run --out FILE',
  );
  let value: unknown;
  try {
    value = shallowJson(text);
  } catch (error) {
    throw bad(asError(error).message.slice(0, MESSAGE), error);
  }
  const { planProblem } = await import('./plan-schema.ts');
  const problem = planProblem(value, fields);
  if (problem !== undefined) throw bad(problem.slice(0, MESSAGE));
  // Checked by the schema.
  return value as SavedPlan;
}

const MESSAGE = 300;
