/** Authorities with which the controller signs what add-ons of Open Cluster Management ask of signers of their own. */
import { secret } from '../../../core/secret.ts';
import { readSigner, type Signer } from '../../../formats/signing/authority.ts';
import { Refused, type Call } from '../../../cluster/kube/call.ts';
import { SECRETS } from '../../../cluster/kube/core-kinds.ts';
import { getObject, titleOf } from '../../../cluster/kube/objects.ts';
import { authorityPlace, SIGNER_ANNOTATION, signerRight, unnamedSigner } from '../addon-rights.ts';
import { secretText } from '../../upstream/capi-objects.ts';
import type { AddonCertificate } from '../../upstream/registration.ts';

/** Secrets of other types, such as those of Cluster API with the authority of a cluster, are for other programs. */
const TYPES: readonly unknown[] = ['kubernetes.io/tls', 'Opaque', undefined];

/**
 * The authority in the Secret that a template names, if the Secret names the signer, too; or why it cannot sign, and what to do. A server
 * that is away is an error. `now` in milliseconds since 1970.
 */
export async function readAuthority(
  call: Call,
  certificate: AddonCertificate,
  now: number,
): Promise<Signer | { readonly problem: string }> {
  const place = authorityPlace(certificate);
  const title = titleOf(SECRETS, place);
  const wrong = (why: string): { readonly problem: string } => {
    const create = `kubectl create secret tls ${place.name} -n ${place.namespace} --cert=ca.crt --key=ca.key`;
    return { problem: `${certificate.signer} cannot sign: ${why}. Put an authority there: ${create}` };
  };
  const object = await getObject(call, SECRETS, place).catch((error: unknown) => {
    if (error instanceof Refused && error.isForbidden) return error;
    throw error;
  });
  if (object instanceof Refused)
    return { problem: `the controller may not read ${title}: ${signerRight(certificate)}` };
  if (object === undefined) return wrong(`there is no ${title}`);
  const { data, type, metadata } = object;
  if (!TYPES.includes(type)) return wrong(`${title} is not of the type kubernetes.io/tls`);
  // Who writes a template may name any Secret, also one that the controller reads for something else.
  const { [SIGNER_ANNOTATION]: named } = metadata.annotations;
  if (named !== certificate.signer) return { problem: unnamedSigner(certificate, named) };
  const text = (key: string): string => secretText({ data }, key) ?? '';
  const signer = readSigner({ certificate: text('tls.crt'), key: secret(text('tls.key')) }, now);
  return 'problem' in signer ? wrong(`${title} has no authority: ${signer.problem}`) : signer;
}
