"""One law for heads, trees and ants"""
