/** Images that a spec names in addition to those of its packages (kurl.md 5.2). Pure. */
import type { Diagnostic } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import { formatImageRef, parseImageRef, type ImageRef } from '../../core/image-ref.ts';
import type { Installer } from '../../spec/installer.ts';

/** Domains whose hosts are allowed as registries. */
const ALLOWED: readonly string[] = ['docker.io', 'gcr.io', 'ghcr.io', 'azurecr.io', 'ttl.sh'];
/** An allowed host as a whole, because others can register subdomains of its domain. */
const ALLOWED_ECR = /^[0-9]{12}\.dkr\.ecr\.us-east-1\.amazonaws\.com$/;

/** True for a registry in the list or in `more`, or a subdomain; `host` may have a port. */
export function isAllowedRegistry(host: string, more: readonly string[]): boolean {
  const name = host.toLowerCase();
  if (more.includes(name)) return true;
  const bare = name.replace(/:[0-9]{1,5}$/, '');
  if (ALLOWED_ECR.test(bare)) return true;
  return [...ALLOWED, ...more].some((known) => bare === known || bare.endsWith(`.${known}`));
}

/**
 * The replacement images in `ekco.podImageOverrides` (`original=other`), each once. Reports all invalid entries and registries
 * that are not allowed with one `SPEC_INVALID`.
 */
export function imageOverrides({ addons }: Installer, more: readonly string[]): readonly string[] {
  const ekco = addons.find(({ name }) => name === 'ekco');
  const entries = ekco?.settings['podImageOverrides'];
  if (ekco === undefined || entries === undefined) return [];
  const { refs, problems } = refsIn(entries, (entry) => readOverride(entry, more));
  if (problems.length === 0) return refs;
  throw new CurlewError('SPEC_INVALID', `ekco.podImageOverrides: ${problems.join('; ')}`, {
    diagnostics: problems.map((message): Diagnostic => {
      return { code: 'installer/image-override', severity: 'error', message, place: ekco.place };
    }),
  });
}

/** The images of `helm.additionalImages`, each once; `SPEC_INVALID` as with {@link imageOverrides}. */
export function helmImages({ sections }: Installer, more: readonly string[]): readonly string[] {
  const entries = sections.find(({ specName }) => specName === 'helm')?.settings['additionalImages'] ?? [];
  const { refs, problems } = refsIn(entries, (entry) => readAllowed(entry, more));
  if (problems.length === 0) return refs;
  throw new CurlewError('SPEC_INVALID', `helm.additionalImages: ${problems.join('; ')}`);
}

function refsIn(entries: unknown, read: (entry: string) => ImageRef | string) {
  const refs = new Set<string>();
  const problems: string[] = [];
  for (const entry of Array.isArray(entries) ? (entries as readonly unknown[]) : [entries]) {
    const ref = typeof entry === 'string' ? read(entry) : 'it is not a string';
    if (typeof ref === 'string') problems.push(`${JSON.stringify(entry)?.slice(0, 200)}: ${ref}`);
    else refs.add(formatImageRef(ref));
  }
  return { refs: [...refs], problems };
}

function readOverride(entry: string, more: readonly string[]): ImageRef | string {
  const [original = '', other, ...rest] = entry.split('=');
  if (other === undefined || rest.length > 0) return 'write an override as ORIGINAL=OTHER';
  for (const text of [original, other]) {
    const ref = parseImageRef(text.trim());
    if (typeof ref === 'string') return ref;
  }
  return readAllowed(other, more);
}

function readAllowed(text: string, more: readonly string[]): ImageRef | string {
  const ref = parseImageRef(text.trim());
  if (typeof ref === 'string') return ref;
  if (isAllowedRegistry(ref.registry, more)) return ref;
  return `${ref.registry} is not an allowed registry (${ALLOWED.join(', ')}); add it to imageRegistries in the configuration`;
}
