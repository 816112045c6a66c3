#!/bin/sh
# Makes a certificate authority of your own, and a certificate for the SuperLink at @HOST@.
# Run it on the SuperLink's machine. ca.crt goes to every site; ca.key stays here, off line.
set -eu
umask 077
cd "$(dirname "$0")"
case "@HOST@" in
    *[!0-9.]*) names="DNS:@HOST@,DNS:localhost,IP:127.0.0.1" ;;
    *) names="IP:@HOST@,DNS:localhost,IP:127.0.0.1" ;;
esac
if [ ! -e ca.key ]; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-384 -nodes -days 3650 -subj "/CN=Tacit federation CA" \
        -addext "basicConstraints=critical,CA:TRUE,pathlen:0" -addext "keyUsage=critical,keyCertSign,cRLSign" \
        -keyout ca.key -out ca.crt
fi
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-384 -nodes -subj "/CN=@HOST@" -keyout superlink.key -out superlink.csr
printf 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\nsubjectAltName=%s\n' "$names" > superlink.ext
openssl x509 -req -in superlink.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 398 -extfile superlink.ext -out superlink.crt
rm superlink.csr superlink.ext
chmod 644 ca.crt superlink.crt
echo "ca.crt (to every site), superlink.crt and superlink.key (here; renew within 398 days by running this again)"
