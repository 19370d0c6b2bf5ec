/** Certificates that an AddOnTemplate of Open Cluster Management asks its hub for: whom they name, and where they are kept. Pure. */
import * as v from 'valibot';
import { fields, type Read } from '../../core/schema.ts';
import { like, list, optionalText, secretName } from './kinds.ts';

/** The signer in kube-controller-manager of client certificates. */
export const KUBE_SIGNER = 'kubernetes.io/kube-apiserver-client';
const MAX_REGISTRATIONS = 8;
const MAX_PERMISSIONS = 20;

/** A volume has the name of the signer, and at most 63 characters. */
const SIGNER = /^(?=.{5,58}$)(?:[a-z0-9][a-z0-9-]*[a-z0-9]\.)+[a-z]+\/[a-z0-9.-]+$/;
const signerName = v.pipe(
  like(SIGNER, 'a signer such as example.com/agents, of at most 58 characters'),
  v.check((name) => !/(?:^|\.)(?:kubernetes|k8s)\.io\//.test(name), 'another signer than those of Kubernetes'),
);
/** Who trusts the authority of a signer may be a Kubernetes: no certificate of it names a user or group of Kubernetes, or of curlew. */
const name = v.pipe(
  like(/^[\x20-\x7e]{1,256}$/, 'plain text of at most 256 characters'),
  v.check((text) => !/^(?:system|curlew):/.test(text), 'no name that begins with system: or curlew:'),
);
const names = v.exactOptional(v.pipe(list(name), v.maxLength(MAX_REGISTRATIONS, 'a list of at most 8 names')));
const roleName = v.pipe(
  like(/^(?!\.\.?$)[^/%\s]{1,253}$/, 'the name of a role'),
  v.check((text) => text !== 'cluster-admin', 'another role than cluster-admin: no add-on gets a whole hub'),
);

/** Types that have a field of their own, which must be there. */
const OWN_FIELD: Readonly<Record<string, string>> = {
  CurrentCluster: 'currentCluster',
  SingleNamespace: 'singleNamespace',
  CustomSigner: 'customSigner',
};

function hasOwnField(one: { readonly type: string }): boolean {
  return (OWN_FIELD[one.type] ?? 'type') in one;
}

const permission = v.pipe(
  fields({
    type: v.picklist(['CurrentCluster', 'SingleNamespace'], 'CurrentCluster or SingleNamespace'),
    currentCluster: v.exactOptional(fields({ clusterRoleName: roleName })),
    singleNamespace: v.exactOptional(
      fields({
        namespace: like(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, 'a namespace'),
        roleRef: fields({
          apiGroup: v.exactOptional(v.literal('rbac.authorization.k8s.io', 'rbac.authorization.k8s.io')),
          kind: v.picklist(['Role', 'ClusterRole'], 'Role or ClusterRole'),
          name: roleName,
        }),
      }),
    ),
  }),
  v.check((one) => hasOwnField(one), 'what belongs to its type: currentCluster or singleNamespace'),
);
const registration = v.pipe(
  fields({
    type: v.picklist(['KubeClient', 'CustomSigner'], 'KubeClient or CustomSigner'),
    kubeClient: v.exactOptional(
      fields({
        hubPermissions: v.exactOptional(
          v.pipe(list(permission), v.maxLength(MAX_PERMISSIONS, 'a list of at most 20 permissions')),
        ),
      }),
    ),
    customSigner: v.exactOptional(
      fields({
        signerName,
        subject: v.exactOptional(fields({ user: name, groups: names, organizationUnits: names })),
        signingCA: fields({ name: secretName, namespace: optionalText }),
      }),
    ),
  }),
  v.check((one) => hasOwnField(one), 'what belongs to its type: CustomSigner has customSigner'),
);
export const REGISTRATIONS = v.pipe(
  list(registration),
  v.maxLength(MAX_REGISTRATIONS, 'a list of at most 8 registrations'),
  v.check((all) => new Set(all.map(signerOf)).size === all.length, 'a list with each signer once'),
);
export type Registration = Read<typeof registration>;

export function signerOf({ type, customSigner }: Registration): string {
  return (type === 'CustomSigner' ? customSigner?.signerName : undefined) ?? KUBE_SIGNER;
}

/** The Secret with a certificate, and where containers have its files. */
export function secretOf(addon: string, signer: string) {
  if (signer === KUBE_SIGNER) {
    return { secretName: `${addon}-hub-kubeconfig`, volume: 'hub-kubeconfig', mountPath: '/managed/hub-kubeconfig' };
  }
  const plain = signer.replaceAll('/', '-');
  return {
    secretName: `${addon}-${plain}-client-cert`,
    volume: `cert-${plain.replaceAll('.', '-')}`,
    mountPath: `/managed/${plain}`,
  };
}
