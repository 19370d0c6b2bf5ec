/** Certificates that an AddOnTemplate of Open Cluster Management asks its hub for: whom they name, and where they are kept. Pure. */
import * as v from 'valibot';
import { fields, fits, type Read } from '../../core/schema.ts';
import type { RequestSubject } from '../../formats/signing/certificate-request.ts';
import { like, list, secretName } from './kinds.ts';

/** The signer in kube-controller-manager of client certificates. */
export const KUBE_SIGNER = 'kubernetes.io/kube-apiserver-client';
const MAX_REGISTRATIONS = 8;
const MAX_PERMISSIONS = 20;

export const NAMESPACE = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const namespace = like(NAMESPACE, 'a namespace');
/** A volume has the name of the signer, and at most 63 characters. */
const SIGNER = /^(?=.{5,58}$)(?:[a-z0-9][a-z0-9-]*[a-z0-9]\.)+[a-z]+\/[a-z0-9.-]+$/;
export const signerName = v.pipe(
  like(SIGNER, 'a signer such as example.com/agents, of at most 58 characters'),
  v.check((name) => !/(?:^|\.)(?:kubernetes|k8s)\.io\//.test(name), 'another signer than those of Kubernetes'),
);
/** Who trusts the authority of a signer may be a Kubernetes: no certificate of it names a user or group of Kubernetes, or of curlew. */
const name = v.pipe(
  like(/^[\x20-\x7e]{1,256}$/, 'plain text of at most 256 characters'),
  v.check((text) => !/^(?:system|kubeadm|curlew):/.test(text), 'no name that begins with system:, kubeadm: or curlew:'),
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
        namespace,
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
        subject: v.exactOptional(fields({ user: name, groups: names, organizationUnit: names })),
        signingCA: fields({ name: secretName, namespace: v.exactOptional(namespace) }),
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
type Registration = Read<typeof registration>;

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

/** A right at the hub that comes with a certificate. */
export interface Permission {
  readonly namespace: string;
  readonly kind: 'Role' | 'ClusterRole';
  readonly name: string;
}

/** A certificate of an add-on on a cluster. */
export interface AddonCertificate extends ReturnType<typeof secretOf> {
  readonly signer: string;
  readonly subject: RequestSubject;
  readonly permissions: readonly Permission[];
  /** The Secret with the authority of a signer of its own. */
  readonly signingCA?: { readonly name: string; readonly namespace?: string };
}

/** The group of an add-on on a cluster, which gets its rights there, and of no other. */
export function addonGroup(cluster: string, addon: string): string {
  return `system:open-cluster-management:cluster:${cluster}:addon:${addon}`;
}

export function agentName(addon: string): string {
  return `${addon}-agent`;
}

const asking = v.object({
  templates: v.exactOptional(v.array(v.object({ registration: v.exactOptional(REGISTRATIONS) }))),
});

/** The certificates that the values of an add-on ask for; none if they cannot be read. `addon`: its name at the hub. */
export function certificatesOf(
  values: unknown,
  { cluster, addon }: { readonly cluster: string; readonly addon: string },
): readonly AddonCertificate[] {
  if (!fits(asking, values)) return [];
  const group = addonGroup(cluster, addon);
  const own = {
    commonName: `${group}:agent:${agentName(addon)}`,
    organizations: [group, `system:open-cluster-management:addon:${addon}`, 'system:authenticated'],
  };
  return (values.templates?.[0]?.registration ?? []).map((one): AddonCertificate => {
    const signer = signerOf(one);
    const base = { ...secretOf(addon, signer), signer };
    const { subject, signingCA } = one.customSigner ?? {};
    if (signer !== KUBE_SIGNER) {
      const { user: commonName, groups: organizations = [], organizationUnit: units } = subject ?? { user: '' };
      const named = subject ? { commonName, organizations, ...(units && units.length > 0 && { units }) } : own;
      return { ...base, subject: named, permissions: [], ...(signingCA && { signingCA }) };
    }
    const permissions = one.kubeClient?.hubPermissions ?? [];
    return { ...base, subject: own, permissions: permissions.flatMap((permission) => permitted(permission, cluster)) };
  });
}

function permitted(
  { type, currentCluster, singleNamespace }: Read<typeof permission>,
  cluster: string,
): readonly Permission[] {
  if (type === 'CurrentCluster' && currentCluster !== undefined)
    return [{ namespace: cluster, kind: 'ClusterRole', name: currentCluster.clusterRoleName }];
  if (type !== 'SingleNamespace' || singleNamespace === undefined) return [];
  const { namespace, roleRef } = singleNamespace;
  return [{ namespace, kind: roleRef.kind, name: roleRef.name }];
}
