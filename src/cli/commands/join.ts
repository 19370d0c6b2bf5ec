/** `curlew join`: join this machine to the cluster of a spec. */
import { JOIN } from '../../requests/node.ts';
import { specCommand } from '../spec-command.ts';

const DETAILS = `The machine becomes an additional node of a cluster that \`curlew install\` has created: curlew installs the container runtime, runs the join hooks of all add-ons, then joins kubernetes. Settings such as kubernetes.masterAddress, kubernetes.kubeadmToken and kubernetes.kubeadmTokenCAHash specify the cluster. Put them in a private file for --installer, so that other users of this machine cannot see them.

FLAGs are those of kURL's join.sh, such as ha or labels=a=b, and override the spec; installer-spec-file=FILE merges a site's own spec.

After a failed run, run the same command again to resume.`;

export const command = specCommand(JOIN, 'join', {
  details: DETAILS,
  examples: [
    'curlew join --bundle bundle.tar.gz --installer site.yaml',
    'curlew join --bundle b.tar.gz --set kubernetes.masterAddress=10.0.0.1:6443',
    'curlew join --bundle b.tar.gz kubernetes-master-address=10.0.0.1:6443 airgap',
  ],
});
