/**
 * The lifecycle hooks: functions of install.sh that a node calls by name. The name contains that of the add-on verbatim,
 * dashes included; hooks are optional.
 */
interface HookRow {
  /** Follows the name of the add-on. */
  readonly suffix: string;
  /** When it is called, for the reference page. */
  readonly about: string;
}

/** Hooks in the order in which a run calls them; the last one is not part of a run. */
export const HOOKS = {
  pre_init: { suffix: '_pre_init', about: 'before anything is installed, for all add-ons' },
  install: { suffix: '', about: 'installs or upgrades; `kustomize/<name>` is emptied first' },
  already_applied: {
    suffix: '_already_applied',
    about: 'instead of install if nothing has changed since the last run',
  },
  join: {
    suffix: '_join',
    about: 'on every other node that joins or is upgraded; `kustomize/<name>` is emptied first',
  },
  post_init: { suffix: '_post_init', about: 'after all add-ons are installed' },
  outro: { suffix: '_outro', about: 'at the very end; its output is shown to the operator below the result' },
  pre_remove: {
    suffix: '_pre_remove',
    about: "removes the add-on's objects from the cluster: once, on a control plane node, when it leaves the cluster",
  },
  leave: { suffix: '_leave', about: 'before a node leaves a cluster that keeps the add-on' },
  uninstall: { suffix: '_uninstall', about: "removes this node's part of the add-on, on every node" },
  health: {
    suffix: '_health',
    about:
      'outside of runs, each minute, by the agent of a fleet that has brought the add-on: fails if it does not work',
  },
} as const satisfies Readonly<Record<string, HookRow>>;

export type Hook = keyof typeof HOOKS;

export const HOOK_NAMES: readonly Hook[] = Object.keys(HOOKS).filter((key): key is Hook => Object.hasOwn(HOOKS, key));

/** The bash function of an add-on's hook. kURL calls containerd's install `containerd_install`. */
export function hookFunction(name: string, hook: Hook): string {
  if (hook === 'install' && name === 'containerd') return 'containerd_install';
  return `${name}${HOOKS[hook].suffix}`;
}

/** The hooks among the functions of an install.sh, in the order of the table. */
export function definedHooks(name: string, functions: ReadonlySet<string>): readonly Hook[] {
  return HOOK_NAMES.filter((hook) => functions.has(hookFunction(name, hook)));
}
