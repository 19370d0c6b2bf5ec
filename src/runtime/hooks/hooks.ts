/** The lifecycle hooks: what their functions are called, in which order they come. */

/**
 * In the order of a run; `install` and `already_applied` exclude each other (kurl.md 6.6). `around` are functions of
 * other names, called before and after kubernetes is installed or joined; `upgrade` is the kubernetes of a node.
 * `pre_remove` removes the cluster's part of an add-on, `uninstall` this node's; `leave` comes where only the node goes.
 */
export type Hook =
  | 'pre_init'
  | 'install'
  | 'already_applied'
  | 'join'
  | 'upgrade'
  | 'around'
  | 'post_init'
  | 'outro'
  | 'pre_remove'
  | 'leave'
  | 'uninstall';

/** Add-ons that run containers; they are installed before images can be loaded. */
const CONTAINER_RUNTIMES: readonly string[] = ['docker', 'containerd'];

export function isContainerRuntime({ name }: { readonly name: string }): boolean {
  return CONTAINER_RUNTIMES.includes(name);
}

export const KUBERNETES = 'kubernetes';

/** The folder's name verbatim, dashes included; install is the bare name, but `containerd_install`. */
export function hookFunction(addon: string, hook: Hook): string {
  if (hook !== 'install') return `${addon}_${hook}`;
  return addon === 'containerd' ? 'containerd_install' : addon;
}

/** What an add-on has to do at kubernetes' install or join, by its name and the setting that asks for it. */
export interface AroundHook {
  readonly addon: string;
  readonly function: string;
  readonly when: 'before' | 'after';
  /** The shell variable that must be set; undefined when the function is called wherever it is defined. */
  readonly ifSet: string | undefined;
  /** It is called where a node joins, too. */
  readonly onJoin?: boolean;
  /** Only where the load balancer gets another address; `others`: and nodes beside this one know the former. */
  readonly ifMoved?: 'always' | 'others';
  /** It is called with the former address and the new one. */
  readonly isTold?: boolean;
}

const INTERNAL_LB = 'EKCO_ENABLE_INTERNAL_LOAD_BALANCER';
const MOVED = 'ekco_handle_load_balancer_address_change';

/** kurl.md 6.6: the special functions of ekco and registry, in the order of their calls. */
export const AROUND_KUBERNETES: readonly AroundHook[] = [
  { addon: 'ekco', function: `${MOVED}_pre_init`, when: 'before', ifSet: undefined, ifMoved: 'always', isTold: true },
  { addon: 'ekco', function: 'ekco_bootstrap_internal_lb', when: 'before', ifSet: INTERNAL_LB, onJoin: true },
  { addon: 'ekco', function: 'ekco_cleanup_bootstrap_internal_lb', when: 'after', ifSet: INTERNAL_LB, onJoin: true },
  { addon: 'ekco', function: `${MOVED}_kubeconfigs`, when: 'after', ifSet: undefined, ifMoved: 'others' },
  { addon: 'ekco', function: `${MOVED}_post_init`, when: 'after', ifSet: undefined, ifMoved: 'others', isTold: true },
  { addon: 'registry', function: 'registry_init', when: 'after', ifSet: undefined },
];
