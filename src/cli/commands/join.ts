/** `curlew join`: join this machine to the cluster of a spec. */
import { specCommand } from '../spec-command.ts';

const DETAILS = `The machine becomes a node beside the primary that \`curlew install\` has made: the container runtime is installed, the join hooks of all add-ons run, then kubernetes joins. How to reach the cluster is told by settings, such as kubernetes.masterAddress, kubernetes.kubeadmToken and kubernetes.kubeadmTokenCAHash; in a file of your own for --installer they are not seen by other users of this machine.

FLAGs are those of kURL's join.sh, such as ha or labels=a=b, on top of the spec; installer-spec-file=FILE lays a site's own spec over it.

When a run has failed, the same command goes on.`;

export const join = specCommand('join', {
  details: DETAILS,
  examples: [
    'curlew join --bundle bundle.tar.gz --installer site.yaml',
    'curlew join --bundle b.tar.gz --set kubernetes.masterAddress=10.0.0.1:6443',
    'curlew join --bundle b.tar.gz kubernetes-master-address=10.0.0.1:6443 airgap',
  ],
});
