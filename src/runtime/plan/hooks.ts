/** The lifecycle hooks: their function names and their order. */

/**
 * Hooks in the order of a run; either `install` or `already_applied` is called (kurl.md 6.6). `around` are functions with other names
 * that are called before and after kubernetes is installed or joined. `upgrade` upgrades kubernetes on a node. `pre_remove`
 * removes an add-on from the cluster, `uninstall` from this node; `leave` is called if only the node leaves the cluster.
 */
export type HookKind =
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

/** Container runtimes; they are installed before images can be loaded. */
const CONTAINER_RUNTIMES: readonly string[] = ['docker', 'containerd'];

export function isContainerRuntime({ name }: { readonly name: string }): boolean {
  return CONTAINER_RUNTIMES.includes(name);
}

export const KUBERNETES = 'kubernetes';

/** The folder's name verbatim, dashes included; install is the bare name, but `containerd_install`. */
export function hookCall(addon: string, hook: HookKind): string {
  if (hook !== 'install') return `${addon}_${hook}`;
  return addon === 'containerd' ? 'containerd_install' : addon;
}

/** The hook that says outside of runs whether an add-on works. */
export function healthFunction(addon: string): string {
  return `${addon}_health`;
}

/** The leftovers of a removed add-on that has no hook for its removal; undefined if it has one. */
export function leftByRemoval(addon: string, isDefined: (called: string) => boolean): string | undefined {
  if (isDefined(hookCall(addon, 'uninstall'))) return undefined;
  const others = (['pre_remove', 'leave'] as const).some((hook) => isDefined(hookCall(addon, hook)));
  return `${others ? 'files and services' : 'everything'} that its hooks installed: it has no ${hookCall(addon, 'uninstall')}`;
}

/** A function of an add-on that is called before or after kubernetes is installed or joined, and when. */
export interface AroundHook {
  readonly addon: string;
  readonly function: string;
  readonly when: 'before' | 'after';
  /** The shell variable that must be set; undefined if no variable is needed. */
  readonly ifSet: string | undefined;
  /** It is also called if a node joins. */
  readonly onJoin?: boolean;
  /** Only if the address of the load balancer changes; `others`: and the cluster has other nodes that use the former one. */
  readonly ifMoved?: 'always' | 'others';
  /** It is called with the former and the new address. */
  readonly passesAddresses?: boolean;
}

const INTERNAL_LB = 'EKCO_ENABLE_INTERNAL_LOAD_BALANCER';
const MOVED = 'ekco_handle_load_balancer_address_change';

/** kurl.md 6.6: the special functions of ekco and registry, in the order of their calls. */
export const AROUND_KUBERNETES: readonly AroundHook[] = [
  {
    addon: 'ekco',
    function: `${MOVED}_pre_init`,
    when: 'before',
    ifSet: undefined,
    ifMoved: 'always',
    passesAddresses: true,
  },
  { addon: 'ekco', function: 'ekco_bootstrap_internal_lb', when: 'before', ifSet: INTERNAL_LB, onJoin: true },
  { addon: 'ekco', function: 'ekco_cleanup_bootstrap_internal_lb', when: 'after', ifSet: INTERNAL_LB, onJoin: true },
  { addon: 'ekco', function: `${MOVED}_kubeconfigs`, when: 'after', ifSet: undefined, ifMoved: 'others' },
  {
    addon: 'ekco',
    function: `${MOVED}_post_init`,
    when: 'after',
    ifSet: undefined,
    ifMoved: 'others',
    passesAddresses: true,
  },
  { addon: 'registry', function: 'registry_init', when: 'after', ifSet: undefined },
];
