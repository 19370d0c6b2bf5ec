/** Second names of Kubernetes' own images, which moved from one registry to another (kurl.md 6.10). Pure. */
import { formatImageRef, parseImageRef } from '../../core/image-ref.ts';

const OLD = 'k8s.gcr.io';
const NEW = 'registry.k8s.io';

/** Names under which an image of this normalised name is looked for as well; none for most images. */
export function aliasesOf(name: string): readonly string[] {
  const ref = parseImageRef(name);
  if (typeof ref === 'string' || (ref.registry !== OLD && ref.registry !== NEW)) return [];
  const moved = { ...ref, registry: ref.registry === OLD ? NEW : OLD };
  // kubeadm looks for coredns without its folder when the registry is not the default one.
  const isCoredns = ref.tag !== undefined && ref.repository.includes('coredns');
  const short = isCoredns ? [{ ...ref, registry: NEW, repository: 'coredns' }] : [];
  return [...new Set([moved, ...short].map(formatImageRef))].filter((alias) => alias !== name);
}
