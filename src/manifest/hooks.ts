/**
 * The lifecycle hooks: functions of install.sh that a node calls by name. The name of the add-on stands in them
 * verbatim, dashes included; a hook is optional and found by its name alone.
 */
interface HookRow {
  /** Comes behind the name of the add-on. */
  readonly suffix: string;
  /** When it is called, for the reference page. */
  readonly about: string;
}

/** In the order in which a run calls them. */
export const HOOKS = {
  pre_init: { suffix: '_pre_init', about: 'before anything is installed, for all add-ons' },
  install: { suffix: '', about: 'installs or upgrades; `kustomize/<name>` has been emptied' },
  already_applied: {
    suffix: '_already_applied',
    about: 'in place of install when nothing has changed since the last run',
  },
  join: {
    suffix: '_join',
    about: 'on every other node that joins or is upgraded; `kustomize/<name>` has been emptied',
  },
  post_init: { suffix: '_post_init', about: 'after all add-ons are installed' },
  outro: { suffix: '_outro', about: 'at the very end; what it prints is shown to the operator below the result' },
  pre_remove: {
    suffix: '_pre_remove',
    about: 'removes what the add-on has in the cluster: once, from a control plane, when it leaves the cluster',
  },
  leave: { suffix: '_leave', about: 'before a node leaves a cluster that keeps the add-on' },
  uninstall: { suffix: '_uninstall', about: "removes this node's part of the add-on, on every node" },
} as const satisfies Readonly<Record<string, HookRow>>;

export type Hook = keyof typeof HOOKS;

export const HOOK_NAMES: readonly Hook[] = Object.keys(HOOKS).filter((key): key is Hook => Object.hasOwn(HOOKS, key));

/** The bash function that is a hook of an add-on. kURL calls containerd's install `containerd_install`. */
export function hookFunction(name: string, hook: Hook): string {
  if (hook === 'install' && name === 'containerd') return 'containerd_install';
  return `${name}${HOOKS[hook].suffix}`;
}

/** Which hooks the functions of an install.sh are, in the order of the table. */
export function definedHooks(name: string, functions: ReadonlySet<string>): readonly Hook[] {
  return HOOK_NAMES.filter((hook) => functions.has(hookFunction(name, hook)));
}
