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
  async ({
    image,
    push = [],
    valuesSecret = [],
    valuesConfigMap = [],
    signer = [],
    reconcile = [],
  }): Promise<readonly Manifest[]> => {
    if (image !== undefined && !/^[\w.:/@-]{1,512}$/.test(image)) {
      const shown = JSON.stringify(image.slice(0, 80));
      const hint = 'write a reference such as registry.example.com/curlew:1.2.0';
      throw new CurlewError('USAGE', `cannot write the Deployment: ${shown} is not a reference of an image`, { hint });
    }
    const wrong = push.find((name) => !CLUSTER_NAME.test(name));
    if (wrong !== undefined) {
      const shown = JSON.stringify(wrong.slice(0, 80));
      const hint = 'write the name of a Cluster: at most 57 lower-case letters, digits and "-"';
      throw new CurlewError('USAGE', `cannot write the rights on ${shown}: it is no name of a cluster`, { hint });
    }
    const values = { Secret: valuesSecret, ConfigMap: valuesConfigMap };
    for (const [kind, names] of Object.entries(values)) {
      const other = names.find((name) => !DNS_NAME.test(name));
      if (other === undefined) continue;
      const shown = JSON.stringify(other.slice(0, 80));
      const hint = `write the name of a ${kind}: lower-case letters, digits, "-" and "."`;
      throw new CurlewError('USAGE', `cannot write the right on ${shown}: it is no name of a ${kind}`, { hint });
    }
    return Promise.resolve(
      hubManifests({
        image,
        push,
        valuesSecrets: valuesSecret,
        valuesConfigMaps: valuesConfigMap,
        signers: signer.map(readSigner),
        reconcile: reconcile.flat(),
      }),
    );
  },
);

function readSigner(text: string): HubSigner {
  const [, name = '', namespace = '', secret = ''] = /^([^=]+)=([^/]+)\/([^/]+)$/.exec(text) ?? [];
  if (fits(signerName, name) && NAMESPACE.test(namespace) && DNS_NAME.test(secret)) return { name, namespace, secret };
  const shown = JSON.stringify(text.slice(0, 80));
  const hint = 'write, for example, example.com/agents=open-cluster-management-hub/agents-ca';
  throw new CurlewError('USAGE', `cannot write the rights for ${shown}: it is no signer with a Secret`, { hint });
}
