/** `curlew join`: join this machine to the cluster of a spec. */
import { FLAGS } from '../../spec/flags.ts';
import type { Command } from '../command.ts';
import { RUN_OPTIONS, runNode, type NodeResult } from '../node-run.ts';
import { nodeExitCode, renderNodeResult } from '../render/run-result.ts';

const DETAILS = `The machine becomes a node beside the primary that \`curlew install\` has made: the container runtime is installed, the join hooks of all add-ons run, then kubernetes joins. How to reach the cluster is told by settings, such as kubernetes.masterAddress, kubernetes.kubeadmToken and kubernetes.kubeadmTokenCAHash; in a file of your own for --installer they are not seen by other users of this machine.

FLAGs are those of kURL's join.sh, such as ha or labels=a=b, on top of the spec; installer-spec-file=FILE lays a site's own spec over it.

When a run has failed, the same command goes on.`;

export const join: Command<NodeResult> = {
  name: 'join',
  summary: 'Join this machine to the cluster of a spec',
  operands: '[FLAG…]',
  details: DETAILS,
  examples: [
    'curlew join --bundle bundle.tar.gz --installer site.yaml',
    'curlew join --bundle b.tar.gz --set kubernetes.masterAddress=10.0.0.1:6443',
    'curlew join --bundle b.tar.gz kubernetes-master-address=10.0.0.1:6443 airgap',
  ],
  options: RUN_OPTIONS,
  bareWords: Object.keys(FLAGS),
  run: async (args, context) => runNode('join', args, context),
  render: (result) => renderNodeResult(result),
  exitCode: nodeExitCode,
};
