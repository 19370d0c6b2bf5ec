/** The lifecycle hooks: what their functions are called, in which order they come. */

/** In the order of a run; `install` and `already_applied` exclude each other (kurl.md 6.6). */
export type Hook = 'pre_init' | 'install' | 'already_applied' | 'join' | 'post_init' | 'outro';

/** Add-ons that run containers; they are installed before images can be loaded. */
export const CONTAINER_RUNTIMES: readonly string[] = ['docker', 'containerd'];

/** The folder's name verbatim, dashes included; install is the bare name, but `containerd_install`. */
export function hookFunction(addon: string, hook: Hook): string {
  if (hook !== 'install') return `${addon}_${hook}`;
  return addon === 'containerd' ? 'containerd_install' : addon;
}
