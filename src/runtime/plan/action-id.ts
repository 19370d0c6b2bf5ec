/** Ids of actions. Plans and journals refer to an action by its id, so it is the same in every run and version. Pure. */
import { hookCall, type HookKind } from './hooks.ts';

const KINDS = ['fetch', 'extract', 'stage', 'images', 'hook', 'cluster', 'node'] as const;

export interface ActionName {
  readonly kind: (typeof KINDS)[number];
  /** A package for `fetch`, `extract` and `stage`, an add-on for `images`, a function for `hook`, a step for `cluster` and `node`. */
  readonly object: string;
}

/** The action that sources every install.sh before the first hook; it has no object. */
export const LOOK_UP = 'look-up';

/** `hook ekco_pre_init`, `fetch ekco-0.28.7`. */
export function actionId(kind: ActionName['kind'], object: string): string {
  return `${kind} ${object}`;
}

/** Undefined for {@link LOOK_UP}, and for an unknown id of another version of curlew. */
export function parseActionId(id: string): ActionName | undefined {
  const space = id.indexOf(' ');
  const kind = KINDS.find((known) => known === id.slice(0, Math.max(space, 0)));
  return kind === undefined ? undefined : { kind, object: id.slice(space + 1) };
}

export function hookActionId(addon: string, hook: HookKind): string {
  return actionId('hook', hookCall(addon, hook));
}

/** The environment entry that marks all processes of a hook; `called` is its function, or {@link LOOK_UP}. */
export function hookMarker(run: string, called: string): string {
  return `CURLEW_HOOK=${run}/${called}`;
}

/** The {@link hookMarker} of an action; undefined if the action starts no process that can survive its run. */
export function actionMarker(run: string, id: string): string | undefined {
  if (id === LOOK_UP) return hookMarker(run, LOOK_UP);
  const { kind, object } = parseActionId(id) ?? {};
  return kind === 'hook' && object !== undefined ? hookMarker(run, object) : undefined;
}
