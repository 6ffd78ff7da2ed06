package auth

import (
	"fmt"
	"net/netip"
	"net/url"
)

// checkURL judges an address in the configuration: absolute, without credentials or a fragment,
// and https, or http to this machine. name is what the error calls it.
func checkURL(name, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "":
		return nil, fmt.Errorf("auth: %s is no absolute URL; it must be like https://host/path", name)
	case u.User != nil || u.Fragment != "":
		return nil, fmt.Errorf("auth: %s has credentials or a fragment; it must have neither", name)
	case u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())):
		return nil, fmt.Errorf("auth: %s must be https; http is allowed for loopback addresses only", name)
	}
	return u, nil
}

func isLoopback(hostname string) bool {
	if hostname == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(hostname)
	return err == nil && ip.IsLoopback()
}
