/** `curlew join-token`: a file with which one machine joins the cluster. */
import { basename } from 'node:path';
import { JOIN_TOKEN } from '../../requests/node.ts';
import { visible } from '../../core/diagnostic.ts';
import { commandFor } from '../command.ts';

const DETAILS = `Runs on a control plane. The file is an installer spec with the address of the cluster, a token and the digest of the cluster's certificate; only its owner can read it. The token is valid for one hour and for one machine: the first join that succeeds deletes it.

--control-plane adds the key of the certificates for another control plane. The cluster keeps them for two hours: once they are gone, or are those of another control plane, they are uploaded again, in a cluster with kubernetes.loadBalancerAddress.`;

export const command = commandFor(JOIN_TOKEN, {
  details: DETAILS,
  examples: ['curlew join-token', 'curlew join-token --control-plane -o node2.yaml'],
  run: async ({ request }, context) => (await import('../../app/join-token.ts')).joinToken(request, context),
  render: ({ file, expires }) =>
    visible(
      `Copy ${file} and the bundle to one machine before ${expires.slice(11, 16)} UTC, and run there: ./join.sh airgap installer-spec-file=${basename(file)}`,
    ),
});
