/** The install folder, as this process and as hooks see it. */
import { isAbsolute, join, relative } from 'node:path';

/** The cluster that hooks of a trial change. */
export interface TrialCluster {
  /** Name of the context in the kubeconfig. */
  readonly context: string;
  /** Address of the API server. */
  readonly server: string;
  /** Version of Kubernetes; undefined if the user may not know. */
  readonly kubernetes: string | undefined;
  /** UID of its kube-system namespace; undefined if the user may not read that. */
  readonly uid: string | undefined;
  /** When the credential of a plug-in expires, in ISO 8601; undefined if it does not. */
  readonly credentialEnds: string | undefined;
}

/** One sentence about it, for the operator before a run. */
export function clusterText({ context, server, kubernetes, credentialEnds }: TrialCluster): string {
  const version = kubernetes === undefined ? '' : `, Kubernetes ${kubernetes}`;
  const ends = credentialEnds === undefined ? '' : `; their credential expires at ${credentialEnds}`;
  return `hooks change the cluster ${server} (context ${context}${version}), and use the network of this machine${ends}`;
}

export interface NodePlace {
  /** Absolute path of the install folder. */
  readonly directory: string;
  /** Path of the same folder for hooks; it differs if hooks are confined. */
  readonly seen: string;
  /** The option that names another one. */
  readonly option: '--install-dir' | '--root';
  /** Hooks run in a sandbox and end when their standard input closes, and so with this process. */
  readonly confined: boolean;
  /** Hooks use the network of this machine. */
  readonly connected: boolean;
  /** Undefined if hooks get no kubeconfig. */
  readonly cluster?: TrialCluster | undefined;
  /** Folders that were created for it, outermost first: a run that is refused before it began removes them. */
  readonly made?: readonly string[];
  /** Wraps a command so that it runs where hooks run. */
  readonly wrap: (command: readonly [string, ...string[]]) => readonly [string, ...string[]];
}

/** The install folder without a sandbox. */
export function plainPlace(directory: string, option: NodePlace['option'] = '--install-dir'): NodePlace {
  return { directory, seen: directory, option, confined: false, connected: true, wrap: (command) => command };
}

/** A path below the install folder, as hooks see it. */
export function seenPath({ directory, seen }: Pick<NodePlace, 'directory' | 'seen'>, path: string): string {
  const below = relative(directory, path);
  return below.startsWith('..') || isAbsolute(below) ? path : join(seen, below);
}

/** The path of this process for a path of hooks: the inverse of {@link seenPath}. */
export function ownPath({ directory, seen }: Pick<NodePlace, 'directory' | 'seen'>, path: string): string {
  return seenPath({ directory: seen, seen: directory }, path);
}
