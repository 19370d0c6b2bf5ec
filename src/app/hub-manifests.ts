/** The objects that make a cluster a hub. */
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { fits } from '../core/schema.ts';
import { CLUSTER_NAME, DNS_NAME } from '../fleet/upstream/kinds.ts';
import { NAMESPACE, signerName } from '../fleet/upstream/registration.ts';
import { hubManifests, type HubSigner, type Manifest } from '../fleet/hub/manifests.ts';
import { HUB_MANIFESTS } from '../requests/hub.ts';

/** Objects for kubectl. `USAGE` for an image that no reference can be. */
export const printHubManifests = useCase(
  HUB_MANIFESTS,
  async ({ image, signer = [], reconcile = [], ...names }): Promise<readonly Manifest[]> => {
    const { push = [], valuesSecret: valuesSecrets = [], valuesConfigMap: valuesConfigMaps = [] } = names;
    if (image !== undefined && !/^[\w.:/@-]{1,512}$/.test(image)) {
      const hint = 'write a reference such as registry.example.com/curlew:1.2.0';
      throw new CurlewError('USAGE', `cannot write the Deployment: ${shown(image)} is not a reference of an image`, {
        hint,
      });
    }
    const cluster = push.find((name) => !CLUSTER_NAME.test(name));
    if (cluster !== undefined) {
      const hint = 'write the name of a Cluster: at most 57 lower-case letters, digits and "-"';
      throw new CurlewError('USAGE', `cannot write the rights on ${shown(cluster)}: it is no name of a cluster`, {
        hint,
      });
    }
    for (const [kind, all] of Object.entries({ Secret: valuesSecrets, ConfigMap: valuesConfigMaps })) {
      const other = all.find((name) => !DNS_NAME.test(name));
      if (other === undefined) continue;
      const hint = `write the name of a ${kind}: lower-case letters, digits, "-" and "."`;
      throw new CurlewError('USAGE', `cannot write the right on ${shown(other)}: it is no name of a ${kind}`, { hint });
    }
    const signers = signer.map(readSigner);
    return Promise.resolve(
      hubManifests({ image, push, valuesSecrets, valuesConfigMaps, signers, reconcile: reconcile.flat() }),
    );
  },
);

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 80));
}

function readSigner(text: string): HubSigner {
  const [, name = '', namespace = '', secret = ''] = /^([^=]+)=([^/]+)\/([^/]+)$/.exec(text) ?? [];
  if (fits(signerName, name) && NAMESPACE.test(namespace) && DNS_NAME.test(secret)) return { name, namespace, secret };
  const hint = 'write, for example, example.com/agents=open-cluster-management-hub/agents-ca';
  throw new CurlewError('USAGE', `cannot write the rights for ${shown(text)}: it is no signer with a Secret`, { hint });
}
