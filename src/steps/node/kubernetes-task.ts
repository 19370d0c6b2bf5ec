/** Calls a function of the kubernetes package of this node, outside of a run. */
import { join } from 'node:path';
import type { Context } from '../../core/context.ts';
import { CurlewError } from '../../core/errors.ts';
import { INSTALL_SH, nodePath } from '../../core/layout.ts';
import { madeIn, Unfinished } from '../../cluster/kube/kubeadm-made.ts';
import { ownScripts } from '../../own/scripts.ts';
import { quoteLines } from '../../platform/process/program-lines.ts';
import { tryProgram } from '../../platform/process/run-program.ts';
import { lockFolder } from '../../runtime/node/lock.ts';
import { readRecords } from '../../runtime/node/records.ts';
import { KUBERNETES } from '../../runtime/plan/hooks.ts';
import { recordedRef, recordOf } from '../../runtime/plan/records.ts';

const SCRIPT = `set -eE
for file in "$1"/*.sh; do source "$file"; done
source "$2"
shift 2
declare -F "$1" >/dev/null || bail "kubernetes: the package of this node is of an earlier version, which has no $1: run ./install.sh of the new \\
bundle first, or ./upgrade.sh on a node that has joined"
"$@"`;

/** Begins the reason of a function that gives up. */
const REASON = `${KUBERNETES}: `;
/** The user has seen all lines as they came. */
const QUOTED = 5;

/** Its output is reported line by line. `CLUSTER_FAILED` where curlew has not installed kubernetes, `HOOK_FAILED` if it fails. */
export async function kubernetesTask(
  directory: string,
  [called, ...words]: readonly [string, ...string[]],
  { env, report, signal, user }: Context,
): Promise<void> {
  if (user !== 0) throw new CurlewError('UNSUPPORTED', 'this changes the machine, which requires root');
  const records = await readRecords(directory);
  const version = recordOf(records.applied, KUBERNETES)?.version;
  if (version === undefined) {
    throw new CurlewError('CLUSTER_FAILED', `curlew has not installed kubernetes in ${directory}`, {
      hint: 'run it on a control plane of a cluster that curlew has made',
    });
  }
  if ((await madeIn('/etc/kubernetes')) === 'unfinished') throw new Unfinished();
  await using _lock = await lockFolder(directory);
  const own = join(directory, nodePath.addon(recordedRef(records, KUBERNETES, version)), INSTALL_SH);
  await tryProgram(
    'bash',
    ['-c', SCRIPT, 'curlew', join(ownScripts(), 'lib'), own, called, ...words],
    {
      env: { ...env, DIR: directory, KUBERNETES_VERSION: version, KUBECONFIG: '/etc/kubernetes/admin.conf' },
      cwd: directory,
      line: (text) => report({ type: 'note', level: 'info', text }),
      signal,
    },
    ({ error, lastLines }) => {
      if (error === undefined) return;
      // What it gives as its reason is its last line, and says what to do.
      const last = lastLines.at(-1) ?? '';
      if (last.startsWith(REASON)) throw new CurlewError('HOOK_FAILED', last);
      const why = `${error.reason}${quoteLines(lastLines.slice(-QUOTED))}`;
      throw new CurlewError('HOOK_FAILED', `${REASON}${called}: ${why}`, {
        hint: 'fix the cause, then run the same command again',
      });
    },
  );
}
