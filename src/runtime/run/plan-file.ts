/**
 * A plan as a document: what a dry run shows, and what a run can be held to later. Nothing in it is ever carried out: a
 * run makes its own plan, and goes on only when that is the same.
 */
import { canonicalJson, digestOf, type Digest } from '../../core/digest.ts';
import { asError, CurlewError } from '../../core/errors.ts';
import { shallowJson } from '../../core/json.ts';
import { compareText, formatRef, type AddonRef } from '../../core/ref.ts';
import type { HostPlan } from '../host/host-plan.ts';
import { readGivenFile } from '../../platform/files/state-file.ts';
import type { PlannedAction, RunPlan } from './run-plan.ts';
import type { RunView } from './request.ts';

/** Everything that a plan follows from. */
export interface PlanBasis {
  /** Version of curlew. */
  readonly tool: string;
  /** By name. */
  readonly packages: readonly (AddonRef & { readonly digest: Digest; readonly settings: Digest })[];
  /** Of all variables that hooks get. */
  readonly variables: Digest;
  /** Of what the records say is extracted and applied. */
  readonly records: Digest;
  /** The run that changed them last. */
  readonly lastRun?: string | undefined;
}

/** Options of the command line that decide what is planned, as they were given; paths are absolute. */
export type PlanWords = Readonly<Record<string, string | readonly string[] | true>>;

export interface SavedPlan {
  readonly format: 1;
  readonly words: PlanWords;
  readonly basis: PlanBasis;
  readonly plan: RunPlan;
  /** As the machine was when the plan was made. */
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
  };
}

/** What has changed since, as sentences without an end; nothing when nothing has. */
export function whatChanged(before: PlanBasis, now: PlanBasis): readonly string[] {
  const packages = packageChanges(before.packages, now.packages);
  const said: string[] = [...packages];
  if (before.tool !== now.tool) said.push(`curlew was ${before.tool} and is ${now.tool}`);
  // Settings and versions of add-ons are among the variables.
  if (packages.length === 0 && before.variables !== now.variables) said.push('other settings of the installer spec');
  if (before.records !== now.records) {
    const since =
      now.lastRun === undefined || now.lastRun === before.lastRun ? '' : `: run ${now.lastRun} came between`;
    said.push(`the records of this node${since}`);
  }
  return said;
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
        ...(known.digest === one.digest ? [] : [`another package of ${formatRef(one)}`]),
        ...(known.settings === one.settings ? [] : [`the settings of ${one.name}`]),
      ];
    }),
    ...gone.map(({ name }) => `${name} is in the plan only`),
  ];
}

/** `PLAN_CHANGED` when a run would not do exactly what was planned. */
export function requireSamePlan(saved: SavedPlan, view: RunView, tool: string): void {
  const changed = whatChanged(saved.basis, basisOf(view, tool));
  const actions = canonicalJson(saved.plan) === canonicalJson(view.plan) ? [] : actionChanges(saved.plan, view.plan);
  const all = changed.length > 0 ? changed : actions;
  if (all.length === 0) return;
  const lines = all.slice(0, MOST_LINES).map((line) => `\n${line}`);
  const more = all.length > MOST_LINES ? `\nand ${all.length - MOST_LINES} more` : '';
  throw new CurlewError('PLAN_CHANGED', `run the saved plan: changed since it was made:${lines.join('')}${more}`, {
    hint: 'look at what would be done now with --dry-run, and save that plan',
  });
}

const MOST_LINES = 20;

function actionChanges(before: RunPlan, now: RunPlan): readonly string[] {
  const ids = (actions: readonly PlannedAction[]): ReadonlySet<string> => new Set(actions.map(({ id }) => id));
  const [was, is] = [ids(before.actions), ids(now.actions)];
  const said = [
    ...now.actions.filter(({ id }) => !was.has(id)).map(({ id, because }) => `to be done now: ${id} (${because})`),
    ...before.actions.filter(({ id }) => !is.has(id)).map(({ id }) => `no longer to be done: ${id}`),
  ];
  return said.length > 0 ? said : ['the order of the actions, or why they are done'];
}

/** Text of the document; whatever else comes with the plan is left out. */
export function formatPlan({ format, words, basis, plan, host }: SavedPlan): string {
  return `${JSON.stringify({ format, words, basis, plan, host }, undefined, 2)}\n`;
}

const LIMIT = 16 << 20;

/** Reads a plan from anywhere: what is not one in every part is `FILE_UNUSABLE`. */
export async function readPlan(path: string): Promise<SavedPlan> {
  const text = await readGivenFile(path, LIMIT);
  if (text === undefined) {
    throw new CurlewError('NOT_FOUND', `read ${path}: no such file`, {
      hint: 'curlew install --dry-run --out FILE writes one',
    });
  }
  const bad = (what: string, cause?: unknown): CurlewError =>
    new CurlewError('FILE_UNUSABLE', `read ${path}: not a saved plan: ${what}`, {
      hint: 'make it again: curlew install --dry-run --out FILE',
      cause,
    });
  let value: unknown;
  try {
    value = shallowJson(text);
  } catch (error) {
    throw bad(asError(error).message.slice(0, MESSAGE), error);
  }
  const { planProblem } = await import('./plan-schema.ts');
  const problem = planProblem(value);
  if (problem !== undefined) throw bad(problem.slice(0, MESSAGE));
  // The schema says so.
  return value as SavedPlan;
}

const MESSAGE = 300;
