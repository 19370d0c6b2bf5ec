/** Derives the names in an add-on's files from its name, and rejects unsuitable names. Pure. */
import { CurlewError } from '../../core/errors.ts';
import { addonRef, type AddonVersion } from '../../core/ref.ts';

export interface AddonNames extends AddonVersion {
  /** Its key in an installer spec: `certManager`. */
  readonly specName: string;
}

/** Names of commands that install scripts call: all add-ons share one shell, where a function would replace them. */
const TAKEN: ReadonlySet<string> = new Set(
  (
    'if then else elif fi case esac for select while until do done in function time coproc ' +
    'alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable ' +
    'eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd ' +
    'pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask ' +
    'unalias unset wait ' +
    'awk base64 basename bash cat chmod chown cp ctr curl cut date dirname docker env find grep head install kubectl ' +
    'kustomize ln log ls mkdir mktemp mount mv openssl ps rm sed sh sleep sort stat systemctl tail tar tee touch tr ' +
    'umount uname uniq wc which xargs bail confirm prompt try maybe'
  ).split(' '),
);

/** `cert-manager` is `certManager`. */
function camel(name: string): string {
  return name.replaceAll(/[-._]+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Checks a name and a version from outside. Throws `PACKAGE_INVALID`. */
export function namesOf(name: string, version: string): AddonNames {
  addonRef(name, version);
  if (TAKEN.has(name)) {
    throw new CurlewError('PACKAGE_INVALID', `"${name}" cannot be used as the name of a new add-on`, {
      hint: `its install function would replace the command ${name} in all add-ons: choose another name`,
    });
  }
  if (name === 'template' || version === 'template' || version === 'build-images') {
    const what = name === 'template' ? 'an add-on' : 'a version';
    throw new CurlewError('PACKAGE_INVALID', `"template" and "build-images" cannot be the name of ${what}`);
  }
  if (version === 'latest' || /^\d+\.\d+\.x$/.test(version)) {
    throw new CurlewError('PACKAGE_INVALID', `"${version}" cannot be the name of a version`, {
      hint: 'it has another meaning in an installer spec',
    });
  }
  return { name, version, specName: camel(name) };
}

/** A valid Kubernetes namespace name, RFC 1123. */
export function labelOf(name: string): string {
  return name
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .slice(0, 63)
    .replaceAll(/^-+|-+$/g, '');
}

/** The name of a setting that belongs to an object: `webhookReplicas`. */
export function settingName(object: string, about: string): string {
  const words = camel(object).replaceAll(/[^A-Za-z0-9]/g, '');
  return `${words}${about}`;
}
