/** Names of shell variables: the name of a setting by rule, and reserved names. */

/** `isLocalPVEnabled` is `IS_LOCAL_PV_ENABLED`. */
export function upperSnake(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .replaceAll(/[^A-Za-z0-9]+/g, '_')
    .toUpperCase();
}

/** kURL's rule: `<NAME>_<FIELD>`. */
export function variableByRule(specName: string, field: string): string {
  return `${upperSnake(specName)}_${upperSnake(field)}`;
}

const RESERVED_PREFIX = /^(?:CURLEW|BASH|LD|DYLD|GLIBC|MALLOC)_/;
const RESERVED =
  /^(?:_|BASH|BASHOPTS|BASHPID|DIR|ENV|E?UID|FUNCNAME|HOME|IFS|(?:OLD)?PWD|PATH|POSIXLY_CORRECT|PPID|PS[0-4]|SHELLOPTS|SHLVL)$/;

/** True for variables that bash, the dynamic linker or this tool read. */
export function isReservedVariable(variable: string): boolean {
  return RESERVED_PREFIX.test(variable) || RESERVED.test(variable);
}
