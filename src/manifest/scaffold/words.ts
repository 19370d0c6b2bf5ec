/** Which words an add-on's name becomes in its files, and which names cannot be one. Pure. */
import { CurlewError } from '../../core/errors.ts';
import { addonRef } from '../../core/ref.ts';
import { upperSnake } from '../../spec/variable-names.ts';

export interface Words {
  readonly name: string;
  readonly version: string;
  /** Its key in an installer spec: `certManager`. */
  readonly specName: string;
  /** What its variables begin with: `CERT_MANAGER`. */
  readonly upper: string;
}

/** As functions of a shell that all add-ons share, these would stand in the way of what install scripts call. */
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
export function wordsOf(name: string, version: string): Words {
  addonRef(name, version);
  if (TAKEN.has(name)) {
    throw new CurlewError('PACKAGE_INVALID', `"${name}" cannot be the name of a new add-on`, {
      hint: `its install function would take the place of the command ${name} in all add-ons: choose another name`,
    });
  }
  if (name === 'template' || version === 'template' || version === 'build-images') {
    const what = name === 'template' ? 'an add-on' : 'a version';
    throw new CurlewError('PACKAGE_INVALID', `"template" and "build-images" are no names of ${what}`);
  }
  if (version === 'latest' || /^\d+\.\d+\.x$/.test(version)) {
    throw new CurlewError('PACKAGE_INVALID', `"${version}" cannot be the name of a version`, {
      hint: 'in an installer spec it means another version',
    });
  }
  return { name, version, specName: camel(name), upper: upperSnake(name) };
}

/** A name that Kubernetes takes for a namespace, RFC 1123. */
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
