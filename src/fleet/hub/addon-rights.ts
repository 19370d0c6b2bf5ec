/** What add-ons of Open Cluster Management may do at a hub, and which of their requests for certificates are as their template asks. Pure. */
import { addonGroup, type AddonCertificate, type Permission } from '../upstream/registration.ts';
import type { AddonPlace } from './content.ts';
import { clusterLabel } from './identity.ts';
import { CONTROLLER_ACCOUNT, wayToRight } from './manifests.ts';
import { bound, RBAC, type Right } from './rbac.ts';
import { ADDON_LABEL, subjectText, type AgentRequest } from './certificate-requests.ts';

export const BINDING_PREFIX = 'curlew:addon:';

/** The RoleBinding by which an add-on has a permission: one for each cluster, so that one can lose it. */
export function addonBinding({ cluster, addon }: AddonPlace, { namespace, kind, name }: Permission): Right {
  const metadata = {
    namespace,
    name: `${BINDING_PREFIX}${cluster}:${addon}:${kind.toLowerCase()}:${name}`,
    labels: { ...clusterLabel(cluster), [ADDON_LABEL]: addon },
  };
  const group = { apiGroup: RBAC, kind: 'Group', name: addonGroup(cluster, addon) };
  return bound('RoleBinding', metadata, { kind, name }, [group]);
}

/** What a controller without this right says, and what gives it. */
export function unbindable({ namespace, kind, name }: Permission, { cluster }: AddonPlace): string {
  const role = `curlew-bind-${name}`;
  const where = namespace === cluster && kind === 'ClusterRole' ? '' : ` -n ${namespace}`;
  const prefix = where === '' ? 'cluster' : '';
  const { namespace: of, name: account } = CONTROLLER_ACCOUNT;
  const rule = `--verb=bind --resource=${kind.toLowerCase()}s.${RBAC} --resource-name=${name}`;
  const binds = `--${prefix}role=${role} --serviceaccount=${of}:${account}`;
  return (
    `the controller may not bind ${kind} ${name} in ${namespace}. Whoever wants that runs ` +
    `kubectl create ${prefix}role ${role} ${rule}${where} && kubectl create ${prefix}rolebinding ${role} ${binds}${where}`
  );
}

/** Where Open Cluster Management has a Secret whose namespace no template names. */
const AUTHORITIES = 'open-cluster-management-hub';

/** The Secret with the authority of a signer. */
export function authorityPlace({ signingCA: { name, namespace = AUTHORITIES } = { name: '' } }: AddonCertificate) {
  return { namespace, name };
}

/** The annotation by which a Secret with an authority names the one signer that signs with it. */
export const SIGNER_ANNOTATION = 'fleet.curlew.dev/signer';

/** Why an authority does not sign for a signer that its Secret does not name, and who may change that. `named`: the one that it names. */
export function unnamedSigner(certificate: AddonCertificate, named: string | undefined): string {
  const { namespace, name } = authorityPlace(certificate);
  const { signer } = certificate;
  const begin = `${signer} cannot sign: Secret ${namespace}/${name}`;
  if (named !== undefined)
    return `${begin} is the authority of another signer by its annotation ${SIGNER_ANNOTATION}. Name the Secret of ${signer} in signingCA`;
  return (
    `${begin} does not name it as its signer. The owner of this authority may allow that everyone who may write AddOnTemplate objects ` +
    `gets certificates of it: kubectl annotate secret ${name} -n ${namespace} ${SIGNER_ANNOTATION}=${signer}`
  );
}

/** How a controller may sign for a signer. */
export function signerRight(certificate: AddonCertificate): string {
  const { namespace, name } = authorityPlace(certificate);
  return wayToRight(`--signer ${certificate.signer}=${namespace}/${name}`);
}

/** Why a request is not one that the template asks for; undefined if it is. `certificates`: undefined without the add-on. */
export function requestProblem(
  { cluster, addon }: Pick<AgentRequest, 'cluster' | 'addon'>,
  certificates: readonly AddonCertificate[] | undefined,
): string | undefined {
  const { name = '', signer, subject } = addon ?? {};
  if (certificates === undefined) return `${cluster} is to have no add-on ${name}`;
  const wanted = certificates.find((one) => one.signer === signer);
  if (wanted === undefined) return `the template of ${name} asks for no certificate of ${signer}`;
  return subjectText(wanted.subject) === subject
    ? undefined
    : `it is not exactly for user and groups of ${name} on ${cluster}`;
}
